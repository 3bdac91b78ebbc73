"""Messages between controller, consumers and people.

Level-triggered: every message carries the whole of what it speaks of, so that a lost, doubled or late one does no harm.
Sets are compared, never added up: what leaves a consumer's set is a StopConsuming, what enters it a StartConsuming.

References:
    Landau 2022, section "Message passing"; the sets instead of edges are those of Kafka's newest group protocol.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, NewType, TypeVar

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds

Incarnation = NewType("Incarnation", str)
"""One process life of a consumer: a uuid that the process mints at its start."""


class Member(NamedTuple):
    """One incarnation of one consumer; sorts by consumer."""

    consumer: ConsumerId
    incarnation: Incarnation

    def __str__(self) -> str:
        """`3@1a2b3c4d`, as it is written in logs."""
        return f"{self.consumer}@{self.incarnation[:8]}"


class Phase(StrEnum):
    """Phase of an incarnation's life."""

    STARTING = "starting"
    """It can take orders, but Spark is not up yet."""
    READING = "reading"
    """Up; with or without partitions."""
    DRAINING = "draining"
    """It finishes or drops the batch in hand, and will own nothing after it."""
    ENDED = "ended"
    """Its last word: it owns nothing and never will."""


class Ending(StrEnum):
    """Reason why an incarnation drains and ends."""

    ASKED = "asked"
    """By a signal, or by the end of the process that it belongs to."""
    RETIRED = "retired"
    """By the controller."""
    SUPERSEDED = "superseded"
    """A newer process has its number."""
    FAILED = "failed"
    """By an error of its own."""


class RunState(StrEnum):
    """State that people want of the group as a whole."""

    RUNNING = "running"
    PAUSED = "paused"
    """Every consumer stays, nobody reads."""
    STOPPED = "stopped"
    """Nobody reads, and all consumers end."""


@dataclass(frozen=True, slots=True)
class Process:
    """Which process an incarnation is: enough to tell, on its own machine, whether that process is gone.

    Attributes:
        host: name of the machine or pod.
        boot_id: Linux' id of the machine's present run.
        start_ticks: clock ticks from boot to its start (`/proc/<pid>/stat`, field 22): tells it from a later process
            with the same pid.
        run_id: the Dagster run or pod uid that it belongs to; empty without one.
        machine_id: which machine, over its boots (`/etc/machine-id`); empty where it has none, and in older reports.
        pid_namespace: the world that `pid` counts in (inode of `/proc/self/ns/pid`): a container has one of its own; 0
            where that is not told, as in older reports.
    """

    host: str
    boot_id: str
    pid: int
    start_ticks: int
    run_id: str = ""
    machine_id: str = ""
    pid_namespace: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the Target, as people are told of it.

    Attributes:
        time_ms: wall clock at its Target.
        reason: why it was made.
        moved: partitions that changed their consumer.
        rscore: what that cost.
        consumers: how many read something after it.
        duration_s: from its Target until every partition was where it belongs; None while it runs, and where it was
            never seen to end.
    """

    time_ms: int
    reason: str
    moved: int
    rscore: float
    consumers: int
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms of joining: what a consumer must have alike with its group.

    Attributes:
        config_hashes: of the controller's configuration, and of the one of a rolling replacement.
    """

    lake_root: str
    suspect_after_s: float
    config_hashes: tuple[str, ...]

    def admit(self, other: "Terms") -> bool:
        """Whether all that may join by `other` may join by these."""
        same = (self.lake_root, self.suspect_after_s) == (other.lake_root, other.suspect_after_s)
        return same and set(self.config_hashes) >= set(other.config_hashes)


@dataclass(frozen=True, slots=True)
class Target:
    """Assignment for the whole group: written by the controller alone; its offset in the topic names it (its *epoch*).

    Attributes:
        assignment: every known partition -> its consumer.
        spares: consumers that shall run and read nothing, ascending. Whoever shall run is in `consumers`.
        speeds: what it was packed with, bytes/s.
        capacity: C that it was packed with, bytes/s.
        rscore: of the change to it.
        reason: why it was made, for people.
        known: incarnations not yet known dead, from the earliest to the latest that joined: of two incarnations of
            one consumer the later one counts.
        set_aside: consumers that keep failing: nothing is given to them.
        time_ms: wall clock, for people only.
        measurement_offset: of the measurement in `monitor.writeSpeed` that it was packed with; None without one.
        pinned: partitions that had to stay, whatever it comes to: their speed was not known, or others were unread.
        history: the last ten changes, this one among them, from the earliest to the latest; before them those that
            have moved something in the hour before.
        terms: what a consumer must have to join; None where the controller does not say.
    """

    algorithm: str
    assignment: Assignment
    spares: tuple[ConsumerId, ...]
    speeds: WriteSpeeds
    capacity: BytesPerSecond
    rscore: float
    reason: str
    known: tuple[Member, ...]
    set_aside: tuple[ConsumerId, ...]
    time_ms: int
    measurement_offset: int | None = None
    pinned: frozenset[TopicPartition] = frozenset()
    history: tuple[Change, ...] = ()
    terms: Terms | None = None

    @property
    def consumers(self) -> tuple[ConsumerId, ...]:
        """Everybody who shall run, ascending."""
        return tuple(sorted({*self.assignment.values(), *self.spares}))


@dataclass(frozen=True, slots=True)
class Order:
    """An Assignment: what one incarnation shall own. Any other incarnation of its consumer does not apply it.

    Attributes:
        owned: the whole set that it shall own.
        revoking: what it may still hold and must give up. Never in `owned`; kept so that a controller that knows this
            record alone knows all that the incarnation may hold.
        coming: what it will be given once others have let go, or may be given if it can open it: a hint to open topics
            ahead, which gives no right to anything.
        retire: it gets nothing any more, for good, and ends.
    """

    member: Member
    owned: frozenset[TopicPartition] = frozenset()
    revoking: frozenset[TopicPartition] = frozenset()
    coming: frozenset[TopicPartition] = frozenset()
    retire: bool = False


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Removes the Assignment of an incarnation whose death is confirmed."""

    member: Member


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A short report: the sets are as the last full one said.

    Attributes:
        sequence: rises by one with every report and heartbeat of the incarnation.
        bytes_per_s: consumed (uncompressed) bytes per second of late.
        batch_age_s: how old the batch in hand is; None without one.
    """

    member: Member
    sequence: int
    phase: Phase
    bytes_per_s: BytesPerSecond
    batch_age_s: float | None


@dataclass(frozen=True, slots=True)
class Report:
    """Report of an incarnation: its persisted metadata and its acknowledgement in one durable write.

    Attributes:
        applied: offset of the last Assignment that it has acted on; None before the first.
        owned: everything that it may still commit.
        stopped: owned partitions that stand still -> why.
        positions: next offset to read of each owned partition, as the lake's table has it.
        version: of kgs.
        config_hash: of the settings that it runs with.
        last_drain_s: time from an Assignment that took partitions away to the report without them; None before the
            first.
        max_drain_s: the longest of these.
        drains: how many there were.
        bad_shares: owned topics of which more records than their rule allows are bad -> share of these, 0 to 1, among
            the last ones that this consumer has read.
        ready: partitions of the applied Assignment's `coming` whose topic it has opened, so that it can read them at
            once; None: it is of a version that does not say so.
        unready: those that it cannot open -> why; it goes on trying.
        ending: why it drains or has ended; None before that, and where an older kgs wrote it.
        why: in words, where it failed.
    """

    member: Member
    sequence: int
    phase: Phase
    bytes_per_s: BytesPerSecond
    batch_age_s: float | None
    process: Process
    applied: int | None
    owned: frozenset[TopicPartition]
    stopped: Mapping[TopicPartition, str] = field(default_factory=dict)
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    version: str = ""
    config_hash: str = ""
    last_drain_s: float | None = None
    max_drain_s: float | None = None
    drains: int = 0
    bad_shares: Mapping[str, float] = field(default_factory=dict)
    ready: frozenset[TopicPartition] | None = None
    unready: Mapping[TopicPartition, str] = field(default_factory=dict)
    ending: Ending | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Starting:
    """A process that has not joined says that it lives, and which passing trouble it waits for.

    It is no member by that: it owns nothing, is given nothing, and stands in nobody's way.
    """

    member: Member
    process: Process
    why: str


@dataclass(frozen=True, slots=True)
class DesiredState:
    """State that people want of the group; the newest one counts."""

    state: RunState
    by: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class DesiredVersion:
    """Version and configuration that every consumer should have, or be replaced. The newest one counts."""

    version: str
    config_hash: str
    by: str
    time_ms: int


Message = Target | Order | Tombstone | Heartbeat | Report | Starting | DesiredState | DesiredVersion
M_co = TypeVar("M_co", bound=Message, covariant=True)


@dataclass(frozen=True, slots=True)
class Received(Generic[M_co]):
    """A message as it stands in its topic.

    Attributes:
        offset: in its partition: `consumer.metadata` 0 for a Target, N for the Assignments of consumer N,
            `controller.metadata` 0 for reports, `operator.metadata` 0 for wishes.
        timestamp_ms: the broker's clock when it was appended.
    """

    message: M_co
    offset: int
    timestamp_ms: int
