"""Recipe that both forms of an any fit algorithm, plain and compiled, follow."""

from typing import Literal, NamedTuple

LOOKS = 2_000
"""Subsets that are looked at, at most, for the least that ends an overload; then the best one found is taken."""


class Recipe(NamedTuple):
    """Differences of one any fit algorithm from another.

    Attributes:
        fit: which of the bins with room takes a partition.
        shuffled: whether partitions come in a random order, not from fast to slow.
        consumers_by: by the sum or the greatest of what speeds consumers are packed; None: partitions are.
        keeps: whether all stays where it is but for what is too much, as `sticky_eviction` has it.
    """

    fit: Literal["first", "best", "worst", "next"]
    shuffled: bool = False
    consumers_by: Literal["sum", "max"] | None = None
    keeps: bool = False
