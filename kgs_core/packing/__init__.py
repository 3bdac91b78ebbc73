"""Which consumer reads which partition: the packing algorithms, and what a change of assignment costs."""

from kgs_core.packing.basics.problem import DEFAULT_CONSUMER_WEIGHT, PackFunction, PackingProblem, RandomSource, Size
from kgs_core.packing.basics.rscore import rebalanced, rscore
from kgs_core.packing.basics.zones import Zones
from kgs_core.packing.classes import Classes, Packed, pack_classes
from kgs_core.packing.near import near
from kgs_core.packing.registry import ALGORITHMS, FRONT, WEIGHING, front_of, parse_name, setting_name

__all__ = [
    "ALGORITHMS",
    "DEFAULT_CONSUMER_WEIGHT",
    "FRONT",
    "WEIGHING",
    "Classes",
    "PackFunction",
    "Packed",
    "PackingProblem",
    "RandomSource",
    "Size",
    "Zones",
    "front_of",
    "near",
    "pack_classes",
    "parse_name",
    "rebalanced",
    "rscore",
    "setting_name",
]
