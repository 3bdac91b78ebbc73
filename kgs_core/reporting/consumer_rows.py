"""Consumers of a group for people, a row each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kgs_core.group.protocol import Incarnation, Phase, Process, RunState, WorkDone
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.member_view import MemberView
from kgs_core.lake.rule.completeness import Completeness
from kgs_core.model import BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds, known_sum, whole_sum
from kgs_core.planning.load import Load
from kgs_core.reporting.plain_values import picked

_SILENT = "silent"


@dataclass(frozen=True, slots=True)
class ExternalFacts:
    """Facts that the group's own topics do not have.

    Attributes:
        load: newest measurement; None: there is none, or it is too old.
        lags: partition -> offsets that the lake lacks; None: unknown.
        complete: how far tables of rules with complete hours are complete.
        newest_rows: derived table -> age of the oldest rows that it lacks, s (None: unknown), and its limit.
    """

    load: Load | None = None
    lags: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    complete: tuple[Completeness, ...] = ()
    newest_rows: Mapping[str, tuple[float | None, float]] = field(default_factory=dict)

    @property
    def speeds(self) -> WriteSpeeds:
        """Write speeds of the newest measurement, bytes/s, without unknown ones."""
        return {} if self.load is None else self.load.speeds

    @property
    def measured_age_s(self) -> float | None:
        """Age of that measurement; None: there is none."""
        return None if self.load is None else self.load.age_s


@dataclass(frozen=True, slots=True)
class ConsumerRow:
    """One consumer, or one of its incarnations if it has several.

    Attributes:
        incarnation: None: no process has joined under this number.
        partitions: those it owns, by its last report, ascending.
        load: sum of their write speeds, stored bytes/s; None if one is unknown.
        bytes_per_s: recently consumed, uncompressed.
        lag: offsets of its partitions that the lake lacks; None if one is unknown.
        known_lag: that of partitions whose lag is known; None: of none. `lag_unknown_partitions` counts the others.
        batch_age_s: age of the batch in flight at its last sign of life; 0.0 without one; None before the first.
        process: its process, by its report; None before the first.
        work: done since its start; None: not reported.
        consumer_class: its class; empty: none. capacity: that the Target packs it to, stored bytes/s.
        zone: where it runs; None: unknown.
    """

    consumer: ConsumerId
    incarnation: Incarnation | None
    state: str
    partitions: tuple[TopicPartition, ...] = ()
    load: BytesPerSecond | None = None
    bytes_per_s: BytesPerSecond | None = None
    lag: int | None = None
    report_age_s: float | None = None
    stopped: Mapping[TopicPartition, str] = field(default_factory=dict)
    last_drain_s: float | None = None
    max_drain_s: float | None = None
    version: str = ""
    config_hash: str = ""
    needs_attention: bool = False
    process: Process | None = None
    batch_age_s: float | None = None
    work: WorkDone | None = None
    known_lag: int | None = None
    lag_unknown_partitions: int = 0
    consumer_class: str = ""
    capacity: BytesPerSecond | None = None
    zone: str | None = None

    @property
    def same_zone_bytes(self) -> int | None:
        """Bytes over the wire from brokers of its zone, since its start; None: unknown."""
        return None if self.work is None else self.work.same_zone_bytes

    @property
    def cross_zone_bytes(self) -> int | None:
        """Bytes over the wire from brokers of other zones, since its start; None: unknown."""
        return None if self.work is None else self.work.cross_zone_bytes

    @property
    def is_silent(self) -> bool:
        """Whether its last report may be outdated: another may read its partitions."""
        return self.state == _SILENT

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; null: unknown.

        Returns:
            {"id", "incarnation" (null: none has joined), "state", "partitions": ["topic:0"], "load" (stored bytes/s),
            "bytes_per_s" (consumed), "lag", "known_lag", "lag_unknown_partitions", "report_age_s",
            "stopped": {"topic:0": reason}, "last_drain_s", "max_drain_s", "version", "config_hash", "zone",
            "same_zone_bytes", "cross_zone_bytes" (over the wire, since its start)}; "class" and "capacity_bytes_per_s",
            if it has a class
        """
        of_class = {"class": self.consumer_class, "capacity_bytes_per_s": self.capacity} if self.consumer_class else {}
        return {"id": self.consumer, **picked(self, *_ROW_KEYS), **of_class}


_ROW_KEYS = (
    *("incarnation", "state", "partitions", "load", "bytes_per_s", "lag", "known_lag", "lag_unknown_partitions"),
    *("report_age_s", "stopped", "last_drain_s", "max_drain_s", "version", "config_hash"),
    *("zone", "same_zone_bytes", "cross_zone_bytes"),
)
CONSUMER_KEYS = ("id", *_ROW_KEYS)
"""Keys of every consumer's values."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a group: its members, and the consumers that should be members."""

    view: GroupView
    facts: ExternalFacts
    now: float
    suspects: frozenset[Incarnation]

    def all(self) -> list[ConsumerRow]:
        """By number, newer incarnations first, without ended ones."""
        target = self.view.target
        wanted = target.message.consumers if target is not None else ()
        living = sorted(
            (member for member in self.view.members.values() if not member.ended),
            key=lambda member: (member.member.consumer, -member.joined),
        )
        rows = [self._row(member) for member in living]
        there = {row.consumer for row in rows}
        rows += [self._absent(consumer) for consumer in wanted if consumer not in there]
        classes, capacities = self.view.classes(), target.message.capacity_of if target is not None else {}
        if classes:
            rows = [
                replace(row, consumer_class=classes.get(row.consumer, ""), capacity=capacities.get(row.consumer))
                for row in rows
            ]
        return sorted(rows, key=lambda row: row.consumer)

    def _absent(self, consumer: ConsumerId) -> ConsumerRow:
        stopped = self.view.run_state is RunState.STOPPED
        return ConsumerRow(consumer, None, "ended" if stopped else "not there", needs_attention=not stopped)

    def _row(self, member: MemberView) -> ConsumerRow:
        (consumer, incarnation), report, state = member.member, member.report, self._state(member)
        age_s = None if member.last_seen_at is None else max(0.0, self.now - member.last_seen_at)
        if report is None:
            return ConsumerRow(consumer, incarnation, state, report_age_s=age_s, needs_attention=True)
        seen = self.facts
        lags = [seen.lags.get(tp) for tp in report.owned]
        return ConsumerRow(
            consumer=consumer,
            incarnation=incarnation,
            state=state,
            partitions=tuple(sorted(report.owned)),
            load=whole_sum(seen.speeds.get(tp) for tp in report.owned),
            bytes_per_s=report.bytes_per_s,
            lag=whole_sum(lags),
            known_lag=known_sum(lags),
            lag_unknown_partitions=lags.count(None),
            report_age_s=age_s,
            batch_age_s=report.batch_age_s or 0.0,
            stopped=report.stopped,
            last_drain_s=report.last_drain_s,
            max_drain_s=report.max_drain_s,
            work=report.work,
            version=report.version,
            config_hash=report.config_hash,
            needs_attention=incarnation in self.suspects or bool(report.stopped),
            process=report.process,
            zone=report.zone,
        )

    def _state(self, member: MemberView) -> str:
        """What it is doing, the most important thing first."""
        (consumer, incarnation), report = member.member, member.report
        if incarnation in self.suspects:
            return _SILENT
        if report is None:
            return "has not reported"
        if self.view.newest()[consumer].member.incarnation != incarnation:
            return "replaced by a newer process"
        if member.retiring or report.phase is Phase.DRAINING:
            return "retiring" if member.retiring else "draining"
        if report.phase is Phase.READING and not report.owned:
            target = self.view.target
            return "spare" if target is not None and consumer in target.message.spares else "reads nothing"
        return str(report.phase)
