"""The bins of one packing while it goes on: their loads, their numbers, and what happens when none may be added."""

import math
from collections.abc import Iterable
from typing import Protocol

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition
from kgs_core.packing.any_fit.fits import WorstFit
from kgs_core.packing.basics.problem import PackingProblem
from kgs_core.packing.basics.spread import spread


class Fit(Protocol):
    """Which of the open bins takes a partition. Keeps the bins in the order that it needs."""

    def choose(self, room: BytesPerSecond, /) -> ConsumerId | None:
        """A bin whose load is at most `room`; None: there is none, or none that this fit looks at."""

    def put(self, consumer: ConsumerId, before: BytesPerSecond | None, after: BytesPerSecond, /) -> None:
        """The load of a bin changed from `before`; None: it was just created."""


class OpenConsumers:
    """The new assignment N of one packing.

    A consumer of less capacity than a new one is treated as one of the same capacity that is filled in part from the
    start, one of more capacity as one that is emptier than empty: so every fit finds bins of unlike sizes.

    Bins with pinned partitions are open from the start, in the order of their numbers, because they will be there
    whatever else is packed.

    References:
        Landau 2022, sections "Modified Any Fit" (Algorithm 1: N) and "Approximation Algorithms Adaptation" (numbers).
    """

    def __init__(self, problem: PackingProblem, fit: Fit) -> None:
        self._problem = problem
        self._fit = fit
        self._loads: dict[ConsumerId, BytesPerSecond] = {}
        self._assignment: dict[TopicPartition, ConsumerId] = {}
        self._overflow: WorstFit | None = None
        self._not_new = problem.not_new
        self._spares = sorted(problem.spares - self._not_new, reverse=True)
        self._next_number = 1
        for consumer, partition in sorted((problem.current[p], p) for p in problem.pinned):
            self._place(partition, consumer)

    def is_open(self, consumer: ConsumerId) -> bool:
        """Whether there is a bin of this number."""
        return consumer in self._loads

    def create(self, consumer: ConsumerId, partition: TopicPartition) -> bool:
        """Open a bin of this number with `partition`, however fast, in it; False: `max_consumers` are open already."""
        if self._is_full():
            return False
        self._place(partition, consumer)
        return True

    def assign_open(self, partition: TopicPartition) -> bool:
        """Place `partition` into an open bin that it fits into; False: there is none."""
        consumer = self._fit.choose(self._problem.capacity - self._problem.speeds[partition])
        if consumer is None:
            return False
        self._place(partition, consumer)
        return True

    def assign(self, partition: TopicPartition, consumer: ConsumerId) -> bool:
        """Place `partition` into this open bin; False: it does not fit."""
        if self._loads[consumer] > self._problem.capacity - self._problem.speeds[partition]:
            return False
        self._place(partition, consumer)
        return True

    def assign_group(self, consumer: ConsumerId, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Place into one bin, opened if it is not there and may be, what fits of `partitions`, in order; the rest."""
        problem, before = self._problem, self._loads.get(consumer)
        load, rest = before, []
        may_open, empty = not self._is_full(), self._empty(consumer)
        for partition in partitions:
            speed = problem.speeds[partition]
            if (
                may_open and problem.may_begin(consumer, partition)
                if load is None
                else load <= problem.capacity - speed
            ):
                load = (empty if load is None else load) + speed
                self._assignment[partition] = consumer
            else:
                rest.append(partition)
        if load is not None:
            self._keep_load(consumer, before, load)
        return rest

    def assign_bin(self, partition: TopicPartition) -> None:
        """Place `partition` into an open bin, else into a new one, else where the load is least.

        A new one is the partition's current consumer, if that has no bin yet.
        """
        if self.assign_open(partition):
            return
        full = self._is_full()
        self._place(partition, self._least_loaded() if full else self._number_for(partition))

    def assign_all(self, partitions: Iterable[TopicPartition]) -> Assignment:
        """`assign_bin` for each of them, in this order; returns the whole, spread over `min_consumers`."""
        for partition in partitions:
            self.assign_bin(partition)
        return spread(self._assignment, self._problem)

    def new_number(self) -> ConsumerId:
        """A number for a bin that belongs to nobody: a spare's, else the lowest one without a bin."""
        while self._spares:
            spare = self._spares.pop()
            if spare not in self._loads:
                return spare
        while self._next_number in self._loads or self._next_number in self._not_new:
            self._next_number += 1
        return ConsumerId(self._next_number)

    def _number_for(self, partition: TopicPartition) -> ConsumerId:
        home = self._problem.home(partition)
        is_free = home is not None and home not in self._loads and self._problem.may_begin(home, partition)
        return home if home is not None and is_free else self.new_number()

    def _is_full(self) -> bool:
        most = self._problem.max_consumers
        return most is not None and len(self._loads) >= most

    def _least_loaded(self) -> ConsumerId:
        if self._overflow is None:
            self._overflow = WorstFit()
            for consumer, load in self._loads.items():
                self._overflow.put(consumer, None, load)
        least = self._overflow.choose(math.inf)
        assert least is not None  # noqa: S101 - `max_consumers` >= 1, so a full set is not empty
        return least

    def _place(self, partition: TopicPartition, consumer: ConsumerId) -> None:
        before = self._loads.get(consumer)
        self._assignment[partition] = consumer
        empty = self._empty(consumer) if before is None else before
        self._keep_load(consumer, before, empty + self._problem.speeds[partition])

    def _empty(self, consumer: ConsumerId) -> BytesPerSecond:
        """What a bin without partitions is filled with, for its size."""
        return self._problem.capacity - self._problem.capacity_of(consumer)

    def _keep_load(self, consumer: ConsumerId, before: BytesPerSecond | None, after: BytesPerSecond) -> None:
        self._loads[consumer] = after
        self._fit.put(consumer, before, after)
        if self._overflow is not None:
            self._overflow.put(consumer, before, after)
