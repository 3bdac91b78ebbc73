"""Which consumer reads which partition: the packing algorithms, and what a change of assignment costs."""

from kgs_core.packing.problem import DEFAULT_CONSUMER_WEIGHT, PackFunction, PackingProblem, RandomSource
from kgs_core.packing.registry import ALGORITHMS, FRONT, WEIGHING, looks_ahead, parse_name, setting_name
from kgs_core.packing.rscore import rebalanced, rscore
from kgs_core.packing.variation import Variation

__all__ = [
    "ALGORITHMS",
    "DEFAULT_CONSUMER_WEIGHT",
    "FRONT",
    "WEIGHING",
    "PackFunction",
    "PackingProblem",
    "RandomSource",
    "Variation",
    "looks_ahead",
    "parse_name",
    "rebalanced",
    "rscore",
    "setting_name",
]
