"""Messages between controller, consumers and people.

Level-triggered: every message carries the whole of what it speaks of, so that a lost, doubled or late one does no harm.
Sets are compared, never added up: what leaves a consumer's set is a StopConsuming, what enters it a StartConsuming.
A field's type says its limits and its form within a record; `codec` checks them, construction does not.

References:
    Landau 2022, section "Message passing"; the sets instead of edges are those of Kafka's newest group protocol.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Generic, TypeVar

from pydantic import Field, ValidateAs

from kgs_core.group.protocol.fields import (
    Amount,
    ByPartition,
    Consumer,
    Count,
    Flag,
    Label,
    Partitions,
    Share,
    Text,
    Topic,
)
from kgs_core.group.protocol.parts import (
    WHERE_SAID,
    Change,
    ClassOfTarget,
    FlatOut,
    Idle,
    LearntCapacity,
    Member,
    MemberField,
    ProcessField,
    SaidCount,
    TermsField,
    WorkDone,
)
from kgs_core.model import ConsumerId

IF_ANY = Field(exclude_if=lambda value: not value)
"""Written only where there is something: it came later than the rest."""
ALWAYS = {"always": True}
"""Marks a field that has a default here, yet must stand in every record: a set that is missing is not an empty one."""


class Phase(StrEnum):
    """Phase of an incarnation's life."""

    STARTING = "starting"
    """It can take assignments, but Spark is not up yet."""
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


def _known_ending(ending: str | None) -> Ending | None:
    """None, too, for a reason that only a later kgs knows: no cause to refuse its report."""
    return Ending(ending) if ending in list(Ending) else None


class RunState(StrEnum):
    """State that people want of the group as a whole."""

    RUNNING = "running"
    PAUSED = "paused"
    """Every consumer stays, nobody reads."""
    STOPPED = "stopped"
    """Nobody reads, and all consumers end."""


@dataclass(frozen=True, slots=True)
class Target:
    """Assignment for the whole group: written by the controller alone; its offset in the topic names it (its *epoch*).

    Attributes:
        spares: consumers that shall run and read nothing, ascending. Whoever shall run is in `consumers`.
        speeds: what it was packed with, bytes/s.
        rscore: of the change to it.
        known: incarnations not yet known dead, from the earliest to the latest that joined: of two incarnations of
            one consumer the later one counts.
        quarantined: consumers that keep failing: nothing is given to them.
        time_ms: wall clock, for people only.
        measurement_offset: of the measurement in `monitor.writeSpeed` that it was packed with; None without one.
        pinned: partitions that had to be where they are, whatever it comes to: their speed was not known, or others
            were unread.
        history: the last ten changes, this one among them, from the earliest to the latest; before them those that
            have moved something in the hour before.
        terms: what a consumer must have to join; None where the controller does not say.
        learnt: what consumers read flat out, where the capacity was learnt from that; None: it is the configured one.
        fulfilled_ms: the broker's clock when the DesiredVersion was appended that is fulfilled: nobody is replaced for
            it any more, whatever is started later.
        applied_ms: the newest `DesiredState.apply_ms` that this Target or an earlier one has answered; None: none.
        idle: why nobody reads: everything is read; None: the group is awake.
        classes: class -> its consumers, none where only its capacity is remembered; `capacity` is that of the first
            class. Empty without classes of consumers.
    """

    algorithm: Annotated[Label, Field(min_length=1)]
    assignment: ByPartition[Consumer]
    spares: tuple[Consumer, ...]
    speeds: Annotated[ByPartition[Amount], Field(alias="speeds_bytes_per_s")]
    capacity: Annotated[Amount, Field(alias="capacity_bytes_per_s")]
    rscore: Amount
    reason: Text
    known: tuple[MemberField, ...]
    quarantined: Annotated[tuple[Consumer, ...], Field(alias="set_aside")]
    time_ms: Count
    measurement_offset: Count | None = None
    pinned: Partitions = frozenset()
    history: tuple[Change, ...] = ()
    terms: TermsField = None
    learnt: Annotated[LearntCapacity | None, WHERE_SAID] = None
    fulfilled_ms: SaidCount = None
    applied_ms: SaidCount = None
    idle: Annotated[Idle | None, WHERE_SAID] = None
    classes: Annotated[Mapping[Label, ClassOfTarget], IF_ANY] = field(default_factory=dict)

    @property
    def class_of(self) -> dict[ConsumerId, str]:
        """Class of each consumer that has one."""
        return {consumer: name for name, found in self.classes.items() for consumer in found.consumers}

    @property
    def capacity_of(self) -> dict[ConsumerId, float]:
        """Capacity that each consumer with a class was packed to, bytes/s; the others were to `capacity`."""
        return {consumer: found.capacity for found in self.classes.values() for consumer in found.consumers}

    @property
    def consumers(self) -> tuple[ConsumerId, ...]:
        """Everybody who shall run, ascending."""
        return tuple(sorted({*self.assignment.values(), *self.spares}))


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """An Assignment: what one incarnation shall own. Any other incarnation of its consumer does not apply it.

    Attributes:
        owned: the whole set that it shall own.
        revoking: what it may still hold and must give up. Never in `owned`; kept so that a controller that knows this
            record alone knows all that the incarnation may hold.
        pending: what it will be given once others have let go, or may be given if it can open it: a hint to open topics
            ahead, which gives no right to anything.
        retire: it gets nothing any more, for good, and ends.
    """

    member: MemberField
    owned: Partitions = field(default=frozenset(), metadata=ALWAYS)
    revoking: Partitions = field(default=frozenset(), metadata=ALWAYS)
    pending: Annotated[Partitions, Field(alias="coming")] = field(default=frozenset(), metadata=ALWAYS)
    retire: Flag = field(default=False, metadata=ALWAYS)


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Removes the Assignment of an incarnation whose death is confirmed."""

    member: Member


@dataclass(frozen=True, slots=True)
class Sign:
    """Sign of life of an incarnation.

    Attributes:
        sequence: rises by one with every report and heartbeat of the incarnation.
        bytes_per_s: consumed (uncompressed) bytes per second of late.
    """

    member: MemberField
    sequence: Count
    phase: Phase
    bytes_per_s: Amount
    batch_age_s: Amount | None


@dataclass(frozen=True, slots=True)
class Heartbeat(Sign):
    """Short report: the sets are those of the last full one."""


@dataclass(frozen=True, slots=True)
class Report(Sign):
    """Report of an incarnation: its persisted metadata and its acknowledgement in one durable write.

    Attributes:
        applied: offset of the last Assignment that it has acted on; None before the first.
        owned: everything that it may still commit.
        stopped: owned partitions that stand still -> why.
        positions: next offset to read of each owned partition, as the lake's table has it.
        last_drain_s: time from an Assignment that took partitions away to the report without them; None before the
            first.
        bad_shares: owned topics of which too many records are bad -> share of these, 0 to 1, among
            the last ones that this consumer has read.
        ready: partitions of the applied Assignment's `pending` whose topic it has opened, so that it can read them at
            once; None: it is of a version that does not say so.
        unready: those that it cannot open -> why; it goes on trying.
        ending: why it drains or has ended; None before that, and where an older kgs wrote it.
        work: done so far; None: an earlier version does not say.
        flat_out: what it reads when it is flat out; None: not known, for it has never been so for long.
        consumer_class: the class that it was started as; empty: it was started without one.
        zone: where it runs, by the name that brokers have it by (`broker.rack`); None: not known.
    """

    process: ProcessField
    applied: Count | None
    owned: Partitions
    stopped: ByPartition[Text] = field(default_factory=dict)
    positions: ByPartition[Count] = field(default_factory=dict)
    version: Annotated[Label, Field(alias="kgs_version")] = ""
    config_hash: Label = ""
    last_drain_s: Amount | None = None
    max_drain_s: Amount | None = None
    drains: Count = 0
    bad_shares: Mapping[Topic, Share] = field(default_factory=dict)
    ready: Partitions | None = None
    unready: ByPartition[Text] = field(default_factory=dict)
    ending: Annotated[Ending | None, ValidateAs(Label | None, _known_ending)] = None
    why: Text = ""
    work: Annotated[WorkDone | None, WHERE_SAID] = None
    flat_out: Annotated[FlatOut | None, WHERE_SAID] = None
    consumer_class: Annotated[Label, Field(alias="class"), IF_ANY] = ""
    zone: Annotated[Label | None, WHERE_SAID] = None


@dataclass(frozen=True, slots=True)
class Starting:
    """A process that has not joined says that it lives, and which passing trouble it waits for.

    It is no member by that: it owns nothing, is given nothing, and stands in nobody's way.
    """

    member: MemberField
    process: ProcessField
    why: Text


@dataclass(frozen=True, slots=True)
class DesiredState:
    """State that people want of the group; the newest one counts.

    Attributes:
        apply_ms: names a request to carry out once what the packer wants, by the wall clock of who asks; None: nobody
            asks. It is open until `Target.applied_ms` is the same.
    """

    state: RunState
    by: Text
    time_ms: Count
    apply_ms: SaidCount = None


@dataclass(frozen=True, slots=True)
class DesiredVersion:
    """Version and configuration that every consumer should have, or be replaced. The newest one counts."""

    version: Annotated[Label, Field(alias="kgs_version")]
    config_hash: Label
    by: Text
    time_ms: Count


Message = Target | MemberAssignment | Tombstone | Heartbeat | Report | Starting | DesiredState | DesiredVersion
M_co = TypeVar("M_co", bound=Message, covariant=True)


@dataclass(frozen=True, slots=True)
class Received(Generic[M_co]):
    """A message as it stands in its topic.

    Attributes:
        offset: in its partition: `consumer.metadata` 0 for a Target, N for the Assignments of consumer N,
            `controller.metadata` 0 for reports, `operator.metadata` 0 for what people want.
        timestamp_ms: the broker's clock when it was appended.
    """

    message: M_co
    offset: int
    timestamp_ms: int
