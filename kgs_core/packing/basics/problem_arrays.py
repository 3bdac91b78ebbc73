"""A packing problem as arrays, for compiled code."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgs_core.model import Assignment, TopicPartition
from kgs_core.packing.basics.problem import PackingProblem

NOBODY = 0
"""In place of a consumer's number."""


@dataclass(frozen=True, slots=True)
class ProblemArrays:
    """Of P partitions.

    Attributes:
        partitions: by topic and number.
        speeds: of each, bytes/s.
        current: number of the consumer that each has and may keep; `NOBODY`.
        pinned: whether it must stay there.
    """

    partitions: list[TopicPartition]
    speeds: NDArray[np.float64]
    current: NDArray[np.int64]
    pinned: NDArray[np.bool_]

    def consumers_of(self, assignment: Assignment) -> NDArray[np.int64]:
        """The consumer of each partition in an assignment of all of them."""
        return np.fromiter(map(assignment.__getitem__, self.partitions), np.int64, len(self.partitions))


def distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending; in a fraction of the time of `np.unique`."""
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def as_arrays(problem: PackingProblem) -> ProblemArrays:
    """The speeds, the current assignment and what is pinned."""
    partitions = sorted(problem.speeds)
    count = len(partitions)
    current = np.array([problem.current.get(p, NOBODY) for p in partitions], np.int64)
    if problem.quarantined:
        current[np.isin(current, list(problem.quarantined))] = NOBODY
    return ProblemArrays(
        partitions,
        np.fromiter(map(problem.speeds.__getitem__, partitions), np.float64, count),
        current,
        np.fromiter(map(problem.pinned.__contains__, partitions), np.bool_, count),
    )
