"""Packing problem: the input of every algorithm."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import NamedTuple, Protocol

from kgs_core.errors import MeasurementError
from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds
from kgs_core.packing.basics.zones import Zones

DEFAULT_CONSUMER_WEIGHT = 1.3
"""What one consumer is worth, in Rscore, where none is given: a front's middle (docs/packing.md)."""


class RandomSource(Protocol):
    """Source of random numbers for the algorithms that begin with a shuffled list."""

    def random(self) -> float:
        """A number in [0, 1)."""


class Size(NamedTuple):
    """Capacity of a consumer, bytes/s, and its price."""

    capacity: BytesPerSecond
    price: float


@dataclass(frozen=True, slots=True)
class PackingProblem:
    """One step: partitions with write speeds, to be read by consumers.

    Attributes:
        speeds: every partition that must have a consumer, bytes/s, >= 0.
        capacity: packing capacity C of a new consumer, bytes/s, > 0.
        current: who reads what now; partitions without a speed are passed over.
        pinned: partitions that stay at their current consumer, whatever its load becomes.
        spares: consumers that run and read nothing; a new bin takes one of their numbers first.
        quarantined: numbers that must not be used; their partitions are placed elsewhere.
        min_consumers: the load is spread over so many, as far as there are partitions for it.
        max_consumers: no more than these, but that pinned partitions keep theirs; None: no bound. When it binds, what
            fits nowhere goes where the load is least, above capacity.
        consumer_weight: how much Rscore one consumer less is worth, for the packers that weigh the two; None: any.
        earlier: speeds when partitions were packed last, as far as they are known, for the packers that look ahead:
            what has changed since tells how much may change until the next time.
        unlike: consumers of another capacity or price than a new one, in prices of a new one. No new bin gets one of
            these numbers.
        zones: for the pass that brings partitions near their leaders, whatever has packed them: see `near`.

    Raises:
        MeasurementError: a speed, the capacity or a bound that cannot be, or a partition pinned to no consumer.
    """

    speeds: WriteSpeeds
    capacity: BytesPerSecond
    current: Assignment
    pinned: frozenset[TopicPartition] = frozenset()
    spares: frozenset[ConsumerId] = frozenset()
    quarantined: frozenset[ConsumerId] = frozenset()
    min_consumers: int = 1
    max_consumers: int | None = None
    consumer_weight: float | None = DEFAULT_CONSUMER_WEIGHT
    earlier: WriteSpeeds = field(default_factory=dict)
    unlike: Mapping[ConsumerId, Size] = field(default_factory=dict)
    zones: Zones = field(default_factory=Zones)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.capacity) and self.capacity > 0):
            raise MeasurementError(f"packing: capacity {self.capacity}: must be a number greater than 0")
        wrong = sorted(p for p, speed in self.speeds.items() if not 0 <= speed < math.inf)
        if wrong:
            raise MeasurementError(f"packing: {wrong[0]}: write speed {self.speeds[wrong[0]]}: must be 0 or greater")
        most = self.max_consumers
        if self.min_consumers < 0 or (most is not None and most < max(1, self.min_consumers)):
            raise MeasurementError(f"packing: from {self.min_consumers} to {most} consumers: not a range")
        consumer_weight = self.consumer_weight
        if consumer_weight is not None and not 0 < consumer_weight < math.inf:
            raise MeasurementError(f"packing: one consumer is worth {consumer_weight}: must be a number greater than 0")
        homeless = sorted(p for p in self.pinned if p not in self.speeds or self.home(p) is None)
        if homeless:
            raise MeasurementError(f"packing: {homeless[0]}: pinned, but has no consumer or no speed")

    def home(self, partition: TopicPartition) -> ConsumerId | None:
        """The consumer that reads `partition` now and may go on; None: none does."""
        consumer = self.current.get(partition)
        return None if consumer in self.quarantined else consumer

    def capacity_of(self, consumer: ConsumerId) -> BytesPerSecond:
        """Packing capacity of this consumer, bytes/s."""
        return self.unlike[consumer].capacity if consumer in self.unlike else self.capacity

    def price_of(self, consumer: ConsumerId) -> float:
        """Price of this consumer, in those of a new one."""
        return self.unlike[consumer].price if consumer in self.unlike else 1.0

    def may_begin(self, consumer: ConsumerId, partition: TopicPartition) -> bool:
        """Whether `partition` may be the first of this consumer: it fits, or would fit into no new one either."""
        return self.speeds[partition] <= self.capacity_of(consumer) or self.speeds[partition] > self.capacity

    @property
    def not_new(self) -> frozenset[ConsumerId]:
        """Numbers that no new bin gets."""
        return self.quarantined | self.unlike.keys() if self.unlike else self.quarantined

    def free_partitions(self) -> list[TopicPartition]:
        """Those that are not pinned, by topic and number, so that no order of a mapping counts."""
        return sorted(self.speeds.keys() - self.pinned)

    def decreasing(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """From fast to slow; equally fast ones by topic and number."""
        return sorted(partitions, key=lambda p: (-self.speeds[p], p))


class PackFunction(Protocol):
    """One algorithm: a function of its arguments alone. Its bins are consumers."""

    def __call__(self, problem: PackingProblem, random: RandomSource, /) -> Assignment:
        """A consumer for every partition of `problem`.

        No consumer is above capacity, but one that reads a single faster partition, one that pinned partitions fill,
        or because `max_consumers` binds.
        """


def shuffled(partitions: Iterable[TopicPartition], random: RandomSource) -> list[TopicPartition]:
    """In an order drawn from `random`, one number for each."""
    return sorted(partitions, key=lambda _: random.random())


def sum_of(speeds: Iterable[BytesPerSecond]) -> BytesPerSecond:
    """Added one after the other: `sum` rounds otherwise from Python 3.12 on, and a plan must not depend on that."""
    return reduce(add, speeds, 0.0)
