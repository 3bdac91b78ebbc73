"""Parts of messages: members, processes, changes of the Target, terms of joining."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, NewType

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    ValidateAs,
    ValidatorFunctionWrapHandler,
    WrapSerializer,
    WrapValidator,
)

from kgs_core.group.protocol.fields import Amount, ByPartition, Consumer, Count, Label, Text, Topic, up_to
from kgs_core.model import ConsumerId, grouped

Incarnation = NewType("Incarnation", str)
"""One process life of a consumer: a uuid that the process mints at its start."""


class Member(NamedTuple):
    """One incarnation of one consumer; sorts by consumer."""

    consumer: Consumer
    incarnation: Annotated[Incarnation, Field(strict=True, pattern=r"^[0-9A-Za-z_-]{1,64}$")]

    def __str__(self) -> str:
        """`3@1a2b3c4d`, as it is written in logs."""
        return f"{self.consumer}@{self.incarnation[:8]}"


def _of_member(record: Any) -> dict[str, Any]:
    """Fields of a member alone: those of a later version, or of the message that it stands in, are passed over."""
    if not isinstance(record, dict):
        raise ValueError("no object")  # noqa: TRY004 - what pydantic takes for a bad record
    return {name: record[name] for name in Member._fields if name in record}


MemberField = Annotated[Member, BeforeValidator(_of_member), PlainSerializer(Member._asdict)]


@dataclass(frozen=True, slots=True)
class Process:
    """Which process an incarnation is, as its fleet names it. Here it is only carried, compared and printed.

    What makes and checks the parts is the fleet's: `fleet/host_process.py` for processes of a machine.

    Attributes:
        parts: name -> value, in the order in which they are written: text, or a whole number that is not negative.
    """

    parts: Mapping[str, str | int]

    @property
    def run_id(self) -> str:
        """Handle of the run that it belongs to, the one part that every kind has; empty without a run."""
        return str(self.parts.get("run_id", ""))


_Parts = Annotated[dict[Label, Annotated[str, up_to(255)] | Count], Field(max_length=50)]
ProcessField = Annotated[Process, ValidateAs(_Parts, Process), PlainSerializer(lambda process: dict(process.parts))]


WHERE_SAID = Field(exclude_if=lambda value: value is None)
"""Written only where there is one: it came later than the rest."""
_SaidAmount = Annotated[Amount | None, WHERE_SAID]
SaidCount = Annotated[Count | None, WHERE_SAID]


@dataclass(frozen=True, slots=True)
class WorkDone:
    """What an incarnation has done since its start, and what it takes; sums, so that a lost report loses nothing.

    Attributes:
        commits: batches that landed; commit_s: seconds from asking for them to the answer.
        full_bytes: consumed (uncompressed) bytes of rounds in a row that had as much to read as they may take.
        full_s: seconds of these; `full_bytes` by this is what the consumer reads when it is flat out.
        cpu_s: processor time of its process, its JVM and its workers; None: not known.
        memory_bytes: resident memory of these, now; pages that they share count for each; None: not known.
        outrun: those of `refused` that another writer was ahead of; None: not said.
        same_zone_bytes: what came over the wire from brokers of its zone; None: not known.
        cross_zone_bytes: what came from those of other zones; None: not known.
    """

    commits: Count = 0
    commit_s: Amount = 0.0
    refused: Count = 0
    full_bytes: Count = 0
    full_s: Amount = 0.0
    cpu_s: Amount | None = None
    memory_bytes: Count | None = None
    outrun: SaidCount = None
    same_zone_bytes: SaidCount = None
    cross_zone_bytes: SaidCount = None


@dataclass(frozen=True, slots=True)
class FlatOut:
    """Rate of an incarnation that is flat out, over its last busy minutes; see `group.membership.flat_out`.

    Attributes:
        busy_s: seconds that it is taken from.
        age_s: how long ago these ended, at the time of the report.
        since_ms: from when on it has read about as fast as that; wall clock, for people.
        consumed_bytes: of the newest of these seconds; offsets: topic -> offsets that were read in them. By both, and
            by how much an offset of the topic is as the log stores it, consumed bytes become stored ones.
        hardware: what it runs on; consumers on other hardware read more or less.
    """

    bytes_per_s: Amount
    busy_s: Amount
    age_s: Amount
    since_ms: Count
    consumed_bytes: Count
    offsets: Mapping[Topic, Count]
    hardware: Label = ""


@dataclass(frozen=True, slots=True)
class LearntCapacity:
    """Memory of what consumers read flat out when a Target was packed by it; `bytes_per_s` is stored bytes.

    It is that of consumers of this version and configuration, and says nothing of others.
    """

    bytes_per_s: Amount
    version: Annotated[Label, Field(alias="kgs_version")]
    config_hash: Label


@dataclass(frozen=True, slots=True)
class ClassOfTarget:
    """Consumers of one class in a Target, ascending, and the capacity that each was packed to, bytes/s."""

    consumers: tuple[Consumer, ...]
    capacity: Annotated[Amount, Field(alias="capacity_bytes_per_s")]


def of_target(
    classes: Mapping[ConsumerId, str],
    capacity_of: Callable[[ConsumerId], float],
    known: Mapping[str, float],
    failing: Mapping[ConsumerId, str],
) -> dict[str, ClassOfTarget]:
    """Class -> its consumers, from the class of each.

    Args:
        known: capacities to keep of classes that have no consumer.
        failing: class of each consumer that is quarantined: else it would be forgotten that none of it can be started.
    """
    by_name = grouped((name, consumer) for consumer, name in sorted(classes.items()))
    found = {name: ClassOfTarget((), capacity) for name, capacity in known.items()}
    found |= {name: ClassOfTarget(tuple(each), capacity_of(each[0])) for name, each in by_name.items()}
    for consumer, name in failing.items():
        if name in found:
            found[name] = replace(found[name], consumers=tuple(sorted({*found[name].consumers, consumer})))
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the Target, as it is shown to people.

    Attributes:
        moved: partitions that changed their consumer.
        consumers: how many read something after it.
        duration_s: from its Target until every partition was where it belongs; None while it runs, and where it was
            never seen to end.
        seen_s: from the measurement that it was packed by until the controller had read it; None: something else
            asked for it, or an earlier version has written this.
        decided_s: from then until its Target was written; None likewise.
        started_s: from then until all consumers had joined that it reads by; None: they were never seen to, or see
            `seen_s`. The rest of `duration_s` is the hand-over.
    """

    time_ms: Count
    reason: Text
    moved: Count
    rscore: Amount
    consumers: Count
    duration_s: Amount | None = None
    seen_s: _SaidAmount = None
    decided_s: _SaidAmount = None
    started_s: _SaidAmount = None

    @property
    def handed_over_s(self) -> float | None:
        """From when its consumers were there until every partition was where it belongs; None: not known."""
        if self.duration_s is None or self.started_s is None:
            return None
        return max(0.0, self.duration_s - self.started_s)

    @property
    def times(self) -> tuple[tuple[str, float | None], ...]:
        """Its four response times by name, one after the other; None: not known."""
        return (
            ("seen_s", self.seen_s),
            ("decided_s", self.decided_s),
            ("started_s", self.started_s),
            ("handed_over_s", self.handed_over_s),
        )

    @property
    def iterations(self) -> float | None:
        """Consumer iterations that it takes at most to catch up: Rscore times seconds; None where these are not known.

        References:
            Landau 2022, section "Rscore": together they tell the most iterations that a full recovery takes.
        """
        return None if self.duration_s is None else self.rscore * self.duration_s


@dataclass(frozen=True, slots=True)
class Idle:
    """Proof that a group had read everything, by which it sleeps: whatever differs from it wakes the group.

    Attributes:
        since_ms: when that was first reported; wall clock, for people.
        ends: end offset of every partition, all of it read.
        topic_ids: of their topics.
    """

    since_ms: Count
    ends: ByPartition[Count]
    topic_ids: Mapping[Topic, Label]


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms of joining: what a consumer must have alike with its group.

    Attributes:
        config_hashes: of the controller's configuration, and of the one of a rolling replacement.
        consumers_per_metadata_partition: which partition holds a consumer's Assignments; None: an earlier version does
            not say.
    """

    lake_root: Annotated[str, up_to(4096)]
    suspect_after_s: Amount
    config_hashes: tuple[Label, ...] = ()
    consumers_per_metadata_partition: Count | None = None

    def admit(self, other: "Terms") -> bool:
        """Whether all that may join by `other` may join by these."""
        same = (self.lake_root, self.suspect_after_s) == (other.lake_root, other.suspect_after_s)
        ks = self.consumers_per_metadata_partition, other.consumers_per_metadata_partition
        return same and (None in ks or ks[0] == ks[1]) and set(self.config_hashes) >= set(other.config_hashes)


_UNSAID = {"lake_root": "", "suspect_after_s": 0.0}  # stands in for what a record without terms has not, or has as null


def _read_terms(record: dict[str, Any], read: ValidatorFunctionWrapHandler) -> Terms | None:
    missing = {name: blank for name, blank in _UNSAID.items() if record.get(name) is None}
    found: Terms = read({**record, **missing})
    return None if missing else found


def _write_terms(terms: Terms | None, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
    found = {**write(terms or Terms("", 0.0)), **({} if terms else dict.fromkeys(_UNSAID))}
    return {name: value for name, value in found.items() if value is not None or name in _UNSAID}


TermsField = Annotated[Terms | None, WrapValidator(_read_terms), WrapSerializer(_write_terms)]
