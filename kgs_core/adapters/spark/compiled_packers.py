"""Compiles what packers need compiled, before somebody waits for it."""

from random import Random

from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.packing.fast_or_plain import LARGE
from kgs_core.packing.problem import PackingProblem
from kgs_core.packing.registry import ALGORITHMS


def compile_packers() -> None:
    """Pack a little by each kind of code; later processes then load what was compiled (docs/adr/0008)."""
    few = {TopicPartition("t", n): float(n % 7 + 1) for n in range(20)}
    ALGORITHMS["search"](PackingProblem(few, 10.0, dict.fromkeys(few, ConsumerId(1))), Random(0))  # noqa: S311 - no secret
    many = {TopicPartition("t", n): 1.0 for n in range(LARGE)}
    for name in ("nfd", "ffd", "bfd", "wfd", "mwf", "keep"):
        ALGORITHMS[name](PackingProblem(many, 10.0, {}), Random(0))  # noqa: S311 - no secret
