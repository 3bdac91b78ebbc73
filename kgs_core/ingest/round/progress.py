"""One topic as its consumer holds it: what is owned, positions, and what stands still and why. Pure values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kgs_core.ingest.round.stops import StopCause, StoppedPartition, look_after_s
from kgs_core.lake.rule.batch import TablePositions, TopicBatch
from kgs_core.model import TopicId

SHARE_RECORDS = 1000
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class TopicProgress:
    """One topic in one consumer; every call gives a new value.

    Attributes:
        uses_dataframe: its records go through the user's Spark transform, in a job of their own.
        at: where the table stands, of what is owned.
        stops: partitions that are owned and stand still.
        tries: partition -> how often in a row it was stopped; forgotten when a batch of it is committed.
        is_missing: Kafka knew no such topic when it was asked last.
        waiting_since: when records were first seen to wait, on the consumer's steady clock; None: none wait.
        bytes_per_record: as read of late, uncompressed.
        recent: records and bad records of the newest committed batches: the last `SHARE_RECORDS` or so.
    """

    topic: str
    topic_id: TopicId
    uses_dataframe: bool = False
    owned: frozenset[int] = frozenset()
    at: TablePositions = field(default_factory=TablePositions)
    stops: Mapping[int, StoppedPartition] = field(default_factory=dict)
    tries: Mapping[int, int] = field(default_factory=dict)
    is_missing: bool = False
    waiting_since: float | None = None
    bytes_per_record: float = 1000.0
    recent: tuple[tuple[int, int], ...] = ()

    @property
    def positions(self) -> Mapping[int, int]:
        """Partition -> next offset to read, as the table has it."""
        return self.at.next_offset

    @property
    def active(self) -> dict[int, int]:
        """Position of each partition that is to be read, on trial or not."""
        stops = self.stops
        return {p: self.positions[p] for p in sorted(self.owned) if p not in stops or stops[p].is_on_trial}

    @property
    def reported_stops(self) -> dict[int, StoppedPartition]:
        """Partitions that are reported as stopped."""
        return {p: stop for p, stop in self.stops.items() if stop.is_reported}

    @property
    def bad_share(self) -> float | None:
        """Share (0 to 1) of bad records among the last `SHARE_RECORDS` or so; None before the first record."""
        records = self.recent_records
        return sum(bad for _, bad in self.recent) / records if records else None

    @property
    def recent_records(self) -> int:
        """Number of records that `bad_share` is computed from."""
        return sum(records for records, _ in self.recent)

    def due(self, now: float) -> frozenset[int]:
        """Stopped partitions whose look is due."""
        return frozenset(
            p for p, s in self.stops.items() if not s.is_on_trial and s.look_at is not None and now >= s.look_at
        )

    def owning(self, partitions: frozenset[int], found: TablePositions) -> "TopicProgress":
        """Owns exactly these, from the table's positions; a stop whose position was moved is over."""
        at = found.of(partitions)
        kept = {p: s for p, s in self.stops.items() if at.next_offset.get(p) == s.position}
        return replace(
            self,
            owned=partitions,
            at=at,
            stops=kept,
            tries={p: n for p, n in self.tries.items() if p in kept or (p in partitions and p not in self.stops)},
        )

    def without(self, partitions: Iterable[int]) -> "TopicProgress":
        """Owns these no longer and forgets all about them: what the table says of them changes from now on."""
        gone = frozenset(partitions)
        return replace(
            self,
            owned=self.owned - gone,
            at=self.at.of(self.owned - gone),
            stops=_without(self.stops, gone),
            tries=_without(self.tries, gone),
            recent=self.recent if self.owned - gone else (),  # whoever has it now knows better how its records are
        )

    def advanced(self, batch: TopicBatch) -> "TopicProgress":
        """With the positions of a batch that has been committed."""
        size = self.bytes_per_record
        if batch.records:
            size = 0.7 * size + 0.3 * batch.consumed_bytes / batch.records
        return replace(
            self,
            at=self.at.after(batch),
            stops=_without(self.stops, batch.ranges),
            tries=_without(self.tries, batch.ranges),
            bytes_per_record=size,
            recent=_recent(self.recent, batch) if batch.records else self.recent,
        )

    def stopped(self, reasons: Mapping[int, str], cause: StopCause, now: float) -> "TopicProgress":
        """These stand still from now on. One that does already keeps the look it has, unless that is due.

        What is known to be wrong with a partition is not replaced by "no answer".
        """
        stops, tries = dict(self.stops), dict(self.tries)
        for p in reasons.keys() & self.owned:
            old, why, what = stops.get(p), reasons[p], cause
            if old is not None and cause is StopCause.NO_ANSWER:
                why, what = old.reason, old.cause
            if old is not None and what is not StopCause.BAD_RECORD and old.waits(now):
                stops[p] = replace(old, reason=why, cause=what)
                continue
            tries[p] = tries.get(p, 0) + 1
            after_s = look_after_s(what, tries[p])
            look_at = None if after_s is None else now + after_s
            stops[p] = StoppedPartition(why, what, self.positions.get(p, 0), look_at, tries[p])
        return replace(self, stops=stops, tries=tries)

    def looking_at_once(self, now: float) -> "TopicProgress":
        """Looks at everything that stands still now: somebody has seen that a cause may be gone."""
        stops = {p: s if s.look_at is None or s.is_on_trial else replace(s, look_at=now) for p, s in self.stops.items()}
        return replace(self, stops=stops)

    def on_trial(self, partitions: Iterable[int], until: float) -> "TopicProgress":
        """Reads these stopped partitions again."""
        trial = {p: replace(self.stops[p], trial_until=until) for p in partitions if p in self.stops}
        return replace(self, stops={**self.stops, **trial})

    def trials_over(self, now: float) -> "TopicProgress":
        """Without the stops whose trial has passed without another failure."""
        over = [p for p, s in self.stops.items() if s.trial_until is not None and now >= s.trial_until]
        return replace(self, stops=_without(self.stops, over)) if over else self


def _without(of: Mapping[int, V], partitions: Iterable[int]) -> dict[int, V]:
    gone = frozenset(partitions)
    return {p: value for p, value in of.items() if p not in gone}


def _recent(recent: tuple[tuple[int, int], ...], batch: TopicBatch) -> tuple[tuple[int, int], ...]:
    kept = (*recent, (batch.records, batch.bad_records))
    total = sum(records for records, _ in kept)
    while total - kept[0][0] >= SHARE_RECORDS:
        total -= kept[0][0]
        kept = kept[1:]
    return kept
