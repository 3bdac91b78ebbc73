"""Sums of figures of which some are not known: unknown is not zero."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

_N = TypeVar("_N", int, float)


def whole_sum(values: Iterable[_N | None]) -> _N | None:
    """The sum; None when one of them is not known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None


def known_sum(values: Sequence[int | None]) -> int | None:
    """The sum of those that are known; None when there are some, and none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known or not values else None
