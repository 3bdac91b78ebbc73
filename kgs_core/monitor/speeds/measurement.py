"""Readings and measurements of the monitor; immutable."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kgs_core.model import TopicId, TopicPartition


class Measure(StrEnum):
    """Source of a reading."""

    LOG_DIRS = "log_dirs"
    """Sizes of the leaders' logs, asked of the brokers: exact."""
    OFFSETS = "offsets"
    """End offsets, and stored bytes per record of a sample of record batches: an estimate."""


class Verdict(StrEnum):
    """Ground that a partition's speed, or its absence, stands on."""

    MEASURED = "measured"
    """Growth of the log's size."""
    ESTIMATED = "estimated"
    """New records x stored bytes per record of a sample."""
    SHRUNK = "shrunk"
    """The log was cut meanwhile (retention, compaction): new records x stored bytes per record of the log."""
    UNKNOWN = "unknown"
    """Not read this time, or not for long enough."""
    RESTARTED = "restarted"
    """The window of this partition began anew: another leader's log, or another way to measure."""
    TRUNCATED = "truncated"
    """The end offset went back: records are gone that were there; the window began anew."""
    RECREATED = "recreated"
    """The topic was deleted and made again under its name; the window began anew."""
    VANISHED = "vanished"
    """The partition is no longer there."""
    CONTRADICTION = "contradiction"
    """The figures of one log exclude each other."""


@dataclass(frozen=True, slots=True)
class PartitionReading:
    """One partition at one moment, as its leader has it.

    Attributes:
        time_s: when the size was read, on the monotonic clock that the whole reading names.
        offsets_s: when the end offset was read, on the same clock; not before `time_s`.
        log_start: first offset that is still there.
        end_offset: next offset to be written.
        size_bytes: of the log as stored, without indexes; None where only offsets were asked for. Read before the two
            offsets, and they in the order of these fields.
        bytes_per_record: stored bytes per offset of a recent sample; None without one.
        zone: where its preferred leader is, the first of its replicas: it stays while leaders come and go. None: not
            known.
    """

    time_s: float
    offsets_s: float
    topic_id: TopicId
    leader: int
    log_start: int
    end_offset: int
    size_bytes: int | None = None
    bytes_per_record: float | None = None
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """All partitions at about one moment.

    Attributes:
        time_s: on the monotonic clock called `clock`; intervals are made of this one only.
        wall_ms: ms since 1970, a label for people; may jump.
        clock: times of two readings can be compared only if they name the same one.
        unknown: why a partition that should be here could not be read.
    """

    time_s: float
    wall_ms: int
    clock: str
    measure: Measure
    partitions: Mapping[TopicPartition, PartitionReading]
    unknown: Mapping[TopicPartition, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionSpeed:
    """Write speed of one partition.

    Attributes:
        bytes_per_s: stored bytes/s, finite and >= 0; None: not known, which is not zero.
        reason: why it is not simply measured; empty when it is.
    """

    verdict: Verdict
    bytes_per_s: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A reading and the speeds that the window has after it; what is published."""

    reading: Reading
    speeds: Mapping[TopicPartition, PartitionSpeed]

    @property
    def known(self) -> dict[TopicPartition, float]:
        """Stored bytes/s of the partitions whose speed is known."""
        return {tp: speed.bytes_per_s for tp, speed in self.speeds.items() if speed.bytes_per_s is not None}

    @property
    def total_bytes_per_s(self) -> float:
        """Sum of the known speeds, stored bytes/s."""
        return sum(self.known.values())
