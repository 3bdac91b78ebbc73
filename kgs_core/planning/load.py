"""Load that a plan is made for: what there is to read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean

from kgs_core.model import TopicId, TopicPartition, WriteSpeeds, by_topic


@dataclass(frozen=True, slots=True)
class Load:
    """Every partition that must have a consumer, and how fast it grows: a measurement as plans are made of it.

    Attributes:
        speeds: write speed of each partition, bytes/s; the last known one where it is not known now.
        unknown: partitions whose speed is not known now. Unknown is not zero: such a partition keeps its consumer and
            its last known speed, so it may be missing in `speeds` only when it was never measured.
        earlier: speeds when partitions were packed last, as far as that is known: what has changed since tells how much
            may change until the next time.
        bytes_per_offset: topic -> stored bytes of one offset on average; topics of which it is not known are left out.
        ends: end offsets of the partitions that were read, if `packing.idle_after_s` asks for them; topic_ids: of their
            topics.
        zones: zone of each partition's leader, as far as it is known.
        measurement_offset: in `monitor.writeSpeed`; None: from elsewhere.
        age_s: how old it was when it was read.
        read_at: when that was, on the steady clock of whoever keeps it.
        missing: partitions of the Target that the last measurements do not know -> since when, as the controller says.
    """

    speeds: WriteSpeeds
    unknown: frozenset[TopicPartition] = frozenset()
    earlier: WriteSpeeds = field(default_factory=dict)
    bytes_per_offset: Mapping[str, float] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, TopicId] = field(default_factory=dict)
    zones: Mapping[TopicPartition, str] = field(default_factory=dict)
    measurement_offset: int | None = None
    age_s: float = 0.0
    read_at: float = 0.0
    missing: Mapping[TopicPartition, float] = field(default_factory=dict)

    @property
    def at(self) -> float:
        """When it was measured, on the clock of `read_at`."""
        return self.read_at - self.age_s

    def as_of(self, now: float) -> "Load":
        """The same, as if it were read at `now`."""
        return replace(self, age_s=now - self.at, read_at=now)

    def write_speeds(self) -> WriteSpeeds:
        """A speed for every partition; a partition never measured is taken for as fast as its topic's others.

        That is their mean; where the topic has no other, the mean of all; 0 only when nothing at all was measured.
        """
        missing = self.unknown - self.speeds.keys()
        if not missing:
            return self.speeds
        overall = fmean(self.speeds.values()) if self.speeds else 0.0
        means = {topic: fmean(speeds.values()) for topic, speeds in by_topic(self.speeds).items()}
        return {**self.speeds, **{p: means.get(p.topic, overall) for p in missing}}
