"""An algorithm in two forms: plain for some partitions, compiled for very many. The same result, sooner."""

from collections.abc import Callable
from dataclasses import dataclass

from kgs_core.model import Assignment
from kgs_core.packing.problem import PackFunction, PackingProblem, RandomSource
from kgs_core.packing.recipe import Recipe

LARGE = 5000
"""Partitions from which on compiled code is used; to load it takes a process about a second."""


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
