"""State of the search: partitions, consumers, and what it weighs.

Speeds are in units of C here, partitions are 0 ... P - 1, consumers 0 ... B - 1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

HOMELESS, ELSEWHERE = -1, -2
"""No consumer now; one that is not among the B, so that every place is a move."""


def distinct(numbers: Ints) -> Ints:
    """Ascending; in a fraction of the time of `np.unique`."""
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


class SearchWeights(NamedTuple):
    """Weights of the search, all in units of Rscore.

    Attributes:
        price: of one consumer.
        outlook: of the speed that a consumer must be expected to shed at the next step.
        evenness: of a consumer's squared slack; small, so that it decides between equals.
        most: more consumers than these are not opened.
        strict: what begins without overload never has any: nothing is to be repaired, which could take more consumers.
    """

    price: float
    outlook: float
    evenness: float
    most: int
    strict: bool


class MovingPartitions(NamedTuple):
    """The partitions.

    Attributes:
        speed: of each, > 0.
        home: consumer of each now, `HOMELESS` or `ELSEWHERE`.
        variance: of the change in speed until the next step.
        by_speed, rank: partitions in order of speed, and the place of each in it.
    """

    speed: Floats
    home: Ints
    variance: Floats
    by_speed: Ints
    rank: Ints


class SearchBins(NamedTuple):
    """The consumers: lists of what each reads, and what follows from them.

    Attributes:
        of: consumer of each partition.
        head, after, before: lists, -1 ends them.
        fixed: speed that stays with a consumer whatever is found.
        empty: load of each without partitions: above 0 if it has less capacity than a new one, below 0 if it has more.
        price: of each, in prices of a new one.
        load, count, energy: of each consumer; `count` without what is fixed.
    """

    of: Ints
    head: Ints
    after: Ints
    before: Ints
    fixed: Floats
    empty: Floats
    price: Floats
    load: Floats
    count: Ints  # type: ignore[assignment] # a tuple's own count is of no use here
    energy: Floats


LIMIT = 24
"""Changes of one move, at most."""


class Work(NamedTuple):
    """Room for what the search keeps between its moves: made outside, so that nothing inside is counted or freed."""

    state: NDArray[np.uint64]
    move: Ints
    touched: Ints
    old: Floats


def new_work() -> Work:
    """A fresh one."""
    touched = 2 * LIMIT + 18
    return Work(
        np.zeros(1, np.uint64), np.zeros((LIMIT + 8, 2), np.int64), np.zeros(touched, np.int64), np.zeros((touched, 3))
    )
