"""Which consumer reads which partition: the packing algorithms, and what a change of assignment costs."""

from kgs_core.packing.basics.problem import DEFAULT_CONSUMER_WEIGHT, PackFunction, PackingProblem, RandomSource
from kgs_core.packing.basics.rscore import rebalanced, rscore
from kgs_core.packing.registry import ALGORITHMS, FRONT, WEIGHING, front_of, parse_name, setting_name

__all__ = [
    "ALGORITHMS",
    "DEFAULT_CONSUMER_WEIGHT",
    "FRONT",
    "WEIGHING",
    "PackFunction",
    "PackingProblem",
    "RandomSource",
    "front_of",
    "parse_name",
    "rebalanced",
    "rscore",
    "setting_name",
]
