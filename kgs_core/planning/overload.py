"""Overloads that a plan cannot fit below capacity, and their cures."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds, grouped

ROUNDING = 1e-9
"""Sums of the same speeds differ in their last digits with the order of addition; relative to the capacity."""


@dataclass(frozen=True, slots=True)
class FastPartition:
    """One partition that is faster than a consumer. Either cure is enough.

    Attributes:
        bytes_per_s: speed that it was packed with.
        partitions: how many its topic must have so that, spread as now, this one fits.
        capacity_bytes_per_s: packing capacity that is enough.
    """

    partition: TopicPartition
    consumer: ConsumerId
    bytes_per_s: BytesPerSecond
    partitions: int
    capacity_bytes_per_s: BytesPerSecond


@dataclass(frozen=True, slots=True)
class FullConsumer:
    """One consumer that is given more than the capacity in several partitions. Either cure is enough.

    Attributes:
        bytes_per_s: what it is given.
        consumers: `max_consumers` that is enough; None: more consumers are no cure, since the partitions of this one
            stay where they are until their speed is known.
        capacity_bytes_per_s: packing capacity that is enough for this consumer.
    """

    consumer: ConsumerId
    bytes_per_s: BytesPerSecond
    consumers: int | None
    capacity_bytes_per_s: BytesPerSecond


Overload = FastPartition | FullConsumer


def fast_partitions(target: Assignment, speeds: WriteSpeeds, capacity: BytesPerSecond) -> list[FastPartition]:
    """The partitions faster than `capacity`, by topic and number; `speeds`: that the target was made with, bytes/s."""
    counts = Counter(p.topic for p in speeds)
    return [
        FastPartition(
            partition=p,
            consumer=target[p],
            bytes_per_s=speeds[p],
            partitions=math.ceil(counts[p.topic] * speeds[p] / capacity),
            capacity_bytes_per_s=speeds[p],
        )
        for p in sorted(speeds)
        if speeds[p] > capacity
    ]


def full_consumers(
    target: Assignment,
    packed: WriteSpeeds,
    capacity_of: Callable[[ConsumerId], BytesPerSecond],
    consumers_needed: int | None,
) -> list[FullConsumer]:
    """The consumers above their capacity that read several partitions, by number.

    Args:
        consumers_needed: how many there would be without a bound; None: unknown, or no more than there are.
    """
    loads = consumer_loads(target, packed)
    counts = Counter(target.values())
    return [
        FullConsumer(consumer, load, consumers_needed, load)
        for consumer, load in sorted(loads.items())
        if counts[consumer] > 1 and load > capacity_of(consumer) * (1 + ROUNDING)
    ]


def consumer_loads(target: Assignment, speeds: WriteSpeeds) -> dict[ConsumerId, BytesPerSecond]:
    """Sum of the speeds of each consumer's partitions, bytes/s, by number; rounded once, whatever the order."""
    held = grouped((consumer, speeds[partition]) for partition, consumer in target.items())
    return {consumer: math.fsum(held[consumer]) for consumer in sorted(held)}
