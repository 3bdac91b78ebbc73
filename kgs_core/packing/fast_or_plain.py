"""An algorithm in two forms: plain for some partitions, compiled for very many. The same result, sooner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kgs_core.model import Assignment
from kgs_core.packing.problem import PackFunction, PackingProblem, RandomSource

LARGE = 5000
"""Partitions from which on compiled code is used; to load it takes a process about a second."""


class Recipe(NamedTuple):
    """What sets one any fit algorithm apart from another.

    Attributes:
        fit: which of the bins with room takes a partition.
        shuffled: whether partitions come in a random order, not from fast to slow.
        consumers_by: by the sum or the greatest of what speeds consumers are packed; None: partitions are.
        keeps: whether all stays where it is but for what is too much, as `keep_and_shed` has it.
    """

    fit: Literal["first", "best", "worst", "next"]
    shuffled: bool = False
    consumers_by: Literal["sum", "max"] | None = None
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class FastOrPlain:
    """A `PackFunction` whose two forms agree to the bit."""

    plain: PackFunction
    recipe: Recipe

    def __call__(self, problem: PackingProblem, random: RandomSource, /) -> Assignment:
        """The form that suits a problem of this size."""
        return (self.plain if len(problem.speeds) < LARGE else self.fast)(problem, random)

    def fast(self, problem: PackingProblem, random: RandomSource, /) -> Assignment:
        """Compiled, whatever the size."""
        from kgs_core.packing.fast_any_fit import pack_fast

        return pack_fast(problem, random, self.recipe)


def fast_or_plain(recipe: Recipe) -> Callable[[PackFunction], FastOrPlain]:
    """Makes a plain algorithm one that is compiled for very many partitions."""
    return lambda plain: FastOrPlain(plain, recipe)
