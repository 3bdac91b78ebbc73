"""Which consumer reads which partition: the packing algorithms, and what a change of assignment costs."""

from kgs_core.packing.problem import PackFunction, PackingProblem, RandomSource
from kgs_core.packing.registry import ALGORITHMS
from kgs_core.packing.rscore import rebalanced, rscore

__all__ = ["ALGORITHMS", "PackFunction", "PackingProblem", "RandomSource", "rebalanced", "rscore"]
