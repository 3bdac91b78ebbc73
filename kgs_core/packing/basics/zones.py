"""Zones: where consumers run and partitions' leaders are, and the price of reading across their borders."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds


@dataclass(frozen=True, slots=True)
class Zones:
    """Zones as far as they are known; what is unknown costs nothing.

    Attributes:
        leaders: zone of each partition's leader.
        weight: price of one C of write speed that is read across zones, in Rscore.
    """

    consumers: Mapping[ConsumerId, str] = field(default_factory=dict)
    leaders: Mapping[TopicPartition, str] = field(default_factory=dict)
    weight: float = 0.0

    def is_far(self, partition: TopicPartition, consumer: ConsumerId) -> bool:
        """Whether `consumer` is known to be in another zone than the partition's leader."""
        zone, leader = self.consumers.get(consumer), self.leaders.get(partition)
        return zone is not None and leader is not None and zone != leader

    def far(self, assignment: Assignment, speeds: WriteSpeeds) -> BytesPerSecond | None:
        """Write speed that is read across zones; None: both zones are known of no partition."""
        known = [p for p, c in assignment.items() if p in self.leaders and c in self.consumers and p in speeds]
        return math.fsum(speeds[p] for p in known if self.is_far(p, assignment[p])) if known else None

    def price(self, assignment: Assignment, speeds: WriteSpeeds, capacity: BytesPerSecond) -> float:
        """Price of what is read across zones, in Rscore."""
        return self.weight * (self.far(assignment, speeds) or 0.0) / capacity if self.weight else 0.0
