"""How far every table of the lake is complete, from its positions and from Kafka's logs. Reads only."""

import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.config import Settings
from kgs_core.config.rule.topic_rule import LATENESS_S, CompleteHours
from kgs_core.errors import KgsError, PortError, TransientError
from kgs_core.kafka.admin import admin_of
from kgs_core.kafka.record_times import RecordTimes
from kgs_core.lake.files.row_schema import IDENTITY
from kgs_core.lake.rule.completeness import HOUR_MS, Completeness, PartitionEdge, completeness
from kgs_core.lake.rule.positions import CLOSED, AppIds
from kgs_core.lake.topics.discovery import refuse_unknown_tables
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.stats import LakeSnapshot, LakeView, TableView
from kgs_core.lake.topics.topic_table import earlier_topic_ids
from kgs_core.model import OffsetRange, TopicPartition, grouped
from kgs_core.system.closing import Closing

Positions = Mapping[str, Mapping[int, int]]
_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class _LateRows:
    """Late rows of a table that were `found` between the positions `before` and `now`, in these files of it."""

    before: Positions
    now: Positions
    files: frozenset[str]
    found: Counter[int]


class CompleteView(Closing):
    """Looks again and again at how far tables are complete. Used by one thread at a time; a context manager."""

    def __init__(self, settings: Settings, timeout_s: float = _TIMEOUT_S, *, asked_for: bool = False) -> None:
        """Connects on first use.

        Args:
            timeout_s: the longest wait for an answer of Kafka.
            asked_for: only tables whose rules ask for complete hours.
        """
        self._settings = settings
        self._timeout_s = timeout_s
        self._asked_for = asked_for
        self._lake = LakeView(settings, timeout_s)
        self._admin = admin_of(settings, timeout_s)
        self._times = RecordTimes(settings, committed=False)
        self._seen: dict[str, _LateRows] = {}

    def close(self) -> None:
        """End the connections."""
        self._times.close()

    def wanted(self, tables: Collection[str]) -> tuple[Completeness, ...]:
        """How far these tables are complete as of now, by name; none: all.

        Raises:
            ConfigError: a table that no topic fills.
            TransientError: Kafka does not say which topics there are.
        """
        snapshot, found = self.look()
        if not snapshot.knows_topics:
            raise TransientError("; ".join(snapshot.problems))
        refuse_unknown_tables(tables, _names(snapshot.tables), ())
        return tuple(each for each in found if not tables or each.table in tables)

    def look(self) -> tuple[LakeSnapshot, tuple[Completeness, ...]]:
        """The lake as of now, and how far each of its tables is complete, by name. Never raises a PortError."""
        asked_ms = int(time.time() * 1000)
        snapshot = self._lake.snapshot()
        return snapshot, self.judged(snapshot, asked_ms)

    def late_rows(self, views: Collection[TableView], before: Positions, until_ms: int) -> Counter[int]:
        """Rows at or behind the positions `before` with timestamps earlier than `until_ms`: start of hour, ms -> rows.

        Reads each file once, where `before` is what the former call has seen, or was asked (its caller has not waited
        for the answer); otherwise all files that may have such.

        Args:
            views: of the last look, of all topics of the table.
            before: topic id -> partition -> position; one that is missing had none.
        """
        table = next(iter(views)).table
        pinned = self._lake.pinned(table)
        if pinned is None:
            return Counter()
        before = {view.topic_id or "": before.get(view.topic_id or "", {}) for view in views}
        now, stamps_ms = positions_of(views), OffsetRange(0, until_ms)
        last, found = self._seen.get(table), Counter[int]()
        from_: Positions = before
        if last is not None and before in (last.now, last.before):
            names = set(pinned.files(stamps_ms=stamps_ms)) - last.files
            if before != last.now:
                found, from_ = last.found, last.now
        else:
            moved = [
                before[id_].get(p, 0) for id_, of in now.items() for p, at in of.items() if at > before[id_].get(p, 0)
            ]
            # The table may be newer than what was seen of its topics
            least = min(moved, default=None) if all(view.version == pinned.version for view in views) else 0
            names = set() if least is None else set(pinned.files(OffsetRange(least, CLOSED), stamps_ms=stamps_ms))
        parts = (_late(pinned.read(name, [*IDENTITY, "_timestamp"]), from_, until_ms) for name in sorted(names))
        found = sum(parts, found)
        self._seen[table] = _LateRows(before, now, frozenset(pinned.files()), found)
        return found

    def judged(self, snapshot: LakeSnapshot, asked_ms: int) -> tuple[Completeness, ...]:
        """How far each table of a snapshot is complete that was begun at `asked_ms`. Never raises a PortError."""
        if self._asked_for:
            asked_for = tuple(view for view in snapshot.tables if self._hours(view.topic) is not None)
            snapshot = replace(snapshot, tables=asked_for)
        if not snapshot.tables:
            return ()
        if not snapshot.knows_topics:
            problem = "; ".join(snapshot.problems)
            return tuple(Completeness(name, None, 0.0, problem=problem) for name in _names(snapshot.tables))
        places = {tp: at for view in snapshot.tables for tp, at in _places(view).items()}
        try:
            ends = self._offsets(places, "latest")
            unread = {tp: at or 0 for tp, at in places.items() if ends.get(tp) != (at or 0)}
            times: Mapping[TopicPartition, int] = self._times.at(unread, self._timeout_s) if unread else {}
            # Behind the times: what is deleted meanwhile must not be passed over by the time of what is left
            firsts = self._offsets(places, "earliest")
            ids = self._admin.topic_ids([view.topic for view in snapshot.tables])
        except KgsError as e:
            return tuple(Completeness(name, None, 0.0, problem=str(e)) for name in _names(snapshot.tables))
        edges = {tp: PartitionEdge(tp, at, firsts.get(tp), ends.get(tp), times.get(tp)) for tp, at in places.items()}
        return tuple(
            self._of(table, views, edges, ids, asked_ms)
            for table, views in sorted(grouped((view.table, view) for view in snapshot.tables).items())
        )

    def _of(
        self,
        table: str,
        views: Collection[TableView],
        edges: Mapping[TopicPartition, PartitionEdge],
        ids: Mapping[str, str | None],
        asked_ms: int,
    ) -> Completeness:
        every = [self._hours(view.topic) for view in views]
        lateness_s = max(LATENESS_S if hours is None else hours.lateness_s for hours in every)
        for view in views:
            if problem := self._problem_of(view, ids.get(view.topic)):
                return Completeness(table, None, lateness_s, problem=problem)
        mine = [edges[TopicPartition(view.topic, p)] for view in views for p in range(view.partitions)]
        return completeness(table, mine, asked_ms, lateness_s)

    def _problem_of(self, view: TableView, topic_id: str | None) -> str:
        """Why nothing is known of a topic that has this id now; empty: its positions count."""
        if view.topic_id is None or topic_id != view.topic_id:
            return f"topic {view.topic}: deleted, or made again"
        if view.version is None or len(view.positions) < view.partitions:
            # A table that is not there yet has no rows of records that may be there; one that is away, too
            return "not there yet, cannot be read, or handed over"
        if not _is_started(view):
            ids = AppIds(self._settings.group, view.topic, view.topic_id)
            try:
                is_new = not earlier_topic_ids(open_lake(self._settings.lake), view.table, ids)
            except KgsError as e:
                return str(e)
            return "" if is_new else f"topic {view.topic}: made again, and not begun: see `kgs status`"
        return ""

    def _hours(self, topic: str) -> CompleteHours | None:
        rule = self._settings.rule_of(topic)
        return rule.complete_hours if rule is not None else None

    def _offsets(
        self, places: Collection[TopicPartition], which: Literal["earliest", "latest"]
    ) -> dict[TopicPartition, int]:
        found = self._admin.each_offset(places, which)
        return {tp: offset for tp, offset in found.items() if not isinstance(offset, PortError)}


def positions_of(views: Collection[TableView]) -> dict[str, dict[int, int]]:
    """Topic id -> partition -> next offset to read, as far as there is one."""
    return {each.topic_id or "": {p: at for p, at in each.positions.items() if at is not None} for each in views}


def _late(rows: pa.Table, before: Positions, until_ms: int) -> Counter[int]:
    rows = rows.filter(pc.field("_timestamp").cast(pa.int64()) < until_ms * 1000)
    found: Counter[int] = Counter()
    for topic_id in pc.unique(rows["_topic_id"]).to_pylist():
        if topic_id not in before:
            continue
        mine, positions = rows.filter(pc.field("_topic_id") == topic_id), before[topic_id]
        at = pc.index_in(mine["_partition"], pa.array([*positions], mine["_partition"].type))
        new = pc.greater_equal(mine["_offset"], pc.fill_null(pa.array([*positions.values()], pa.int64()).take(at), 0))
        hours = pc.divide(mine["_timestamp"].filter(new).cast(pa.int64()), HOUR_MS * 1000)
        found += Counter({one["values"] * HOUR_MS: one["counts"] for one in pc.value_counts(hours).to_pylist()})
    return found


def _is_started(view: TableView) -> bool:
    return any(at is not None for at in view.positions.values())


def _places(view: TableView) -> dict[TopicPartition, int | None]:
    """Next offset to read of each partition of a topic; of one that came after the first start that is 0."""
    start = 0 if _is_started(view) else None
    found = {p: view.positions.get(p) for p in range(view.partitions)}
    return {TopicPartition(view.topic, p): start if at is None else at for p, at in found.items()}


def _names(views: Collection[TableView]) -> list[str]:
    return sorted({view.table for view in views})
