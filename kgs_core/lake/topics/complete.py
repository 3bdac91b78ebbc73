"""How far every table of the lake is complete, from its positions and from Kafka's logs. Reads only."""

import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Literal

from kgs_core.config import Settings
from kgs_core.config.rule.complete_hours import LATENESS_S, CompleteHours
from kgs_core.errors import KgsError, PortError, TransientError
from kgs_core.kafka.admin import admin_of
from kgs_core.kafka.record_times import RecordTimes
from kgs_core.lake.rule.completeness import Completeness, Lateness, PartitionEdge, completeness
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.discovery import refuse_unknown_tables
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.late_rows import LateRows
from kgs_core.lake.topics.lateness import lateness_of
from kgs_core.lake.topics.stats import LakeSnapshot, LakeView, TableView, with_sides
from kgs_core.lake.topics.topic_table import earlier_topic_ids
from kgs_core.model import TopicPartition, grouped
from kgs_core.system.closing import Closing

_TIMEOUT_S = 3.0
_AWAY = "not there yet, cannot be read, or handed over"
"""A table that is not there yet has no rows of records that may be there; one that is away, too."""


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
        self._late = LateRows()

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
        refuse_unknown_tables(tables, [each.table for each in found], ())
        return tuple(each for each in found if not tables or each.table in tables)

    def look(self) -> tuple[LakeSnapshot, tuple[Completeness, ...]]:
        """The lake as of now, and how far each of its tables is complete, by name. Never raises a PortError."""
        asked_ms = int(time.time() * 1000)
        snapshot = self._lake.snapshot()
        return snapshot, self.judged(snapshot, asked_ms)

    def with_lateness(self, found: Collection[Completeness]) -> tuple[Completeness, ...]:
        """The same with how late rows of these tables came; reads some of their files."""
        return tuple(replace(each, learnt=self._learnt(each.table)) for each in found)

    def _learnt(self, table: str) -> Lateness | None:
        try:
            pinned = self._lake.pinned(table)
            return None if pinned is None else lateness_of(pinned)
        except Exception:  # noqa: BLE001 - stores and pyarrow raise what they like; it is not known then
            return None

    def late_rows(self, table: str, since: int, until_ms: int) -> Counter[int]:
        """Rows that came behind version `since` of a table and are of hours before `until_ms`, as of the last look.

        Returns:
            Start of the hour, ms since 1970 -> rows.

        Raises:
            TransientError: the last look could not read the table.
        """
        pinned = self._lake.pinned(table)
        if pinned is None:
            raise TransientError(f"table {table}: cannot be read")
        return self._late.of(table, pinned, since, until_ms)

    def judged(self, snapshot: LakeSnapshot, asked_ms: int) -> tuple[Completeness, ...]:
        """How far each table of a snapshot is complete that was begun at `asked_ms`. Never raises a PortError."""
        filled_by = grouped((each.table, view) for view in snapshot.tables for each in with_sides([view]))
        if self._asked_for:
            wanted = [view for view in snapshot.tables if self._hours(view.topic) is not None]
            filled_by = {each.table: filled_by[each.table] for each in with_sides(wanted)}
        views = {view.topic: view for every in filled_by.values() for view in every}.values()
        if not views:
            return ()
        if not snapshot.knows_topics:
            return _unknown(filled_by, "; ".join(snapshot.problems))
        places = {tp: at for view in views for tp, at in _places(view).items()}
        try:
            ends = self._offsets(places, "latest")
            unread = {tp: at or 0 for tp, at in places.items() if ends.get(tp) != (at or 0)}
            times: Mapping[TopicPartition, int] = self._times.at(unread, self._timeout_s) if unread else {}
            # Behind the times: what is deleted meanwhile must not be passed over by the time of what is left
            firsts = self._offsets(places, "earliest")
            ids = self._admin.topic_ids([view.topic for view in views])
        except KgsError as e:
            return _unknown(filled_by, str(e))
        problems = {view.topic: self._problem_of(view, ids.get(view.topic)) for view in views}
        empty_to = self._times.empty_to if unread else {}
        edges = {
            tp: PartitionEdge(tp, at, firsts.get(tp), ends.get(tp), times.get(tp), empty_to.get(tp))
            for tp, at in places.items()
        }
        return tuple(self._of(table, every, problems, edges, asked_ms) for table, every in sorted(filled_by.items()))

    def _of(
        self,
        table: str,
        views: Collection[TableView],
        problems: Mapping[str, str],
        edges: Mapping[TopicPartition, PartitionEdge],
        asked_ms: int,
    ) -> Completeness:
        every = [self._hours(view.topic) for view in views]
        lateness_s = max(LATENESS_S if hours is None else hours.lateness_s for hours in every)
        # A side table may be away while the topic's own is not
        away = [each for each in with_sides(views) if each.table == table and each.version is None]
        for problem in [problems[view.topic] for view in views] + [_AWAY for _ in away]:
            if problem:
                return Completeness(table, None, lateness_s, problem=problem)
        mine = [edges[TopicPartition(view.topic, p)] for view in views for p in range(view.partitions)]
        return completeness(table, mine, asked_ms, lateness_s)

    def _problem_of(self, view: TableView, topic_id: str | None) -> str:
        """Why nothing is known of a topic that has this id now; empty: its positions count."""
        if view.topic_id is None or topic_id != view.topic_id:
            return f"topic {view.topic}: deleted, or made again"
        if view.version is None or len(view.positions) < view.partitions:
            return _AWAY
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


def versions_of(views: Collection[TableView]) -> dict[str, int]:
    """Table, side tables too -> version of its log, as far as it is known."""
    known = ((each.table, each.version) for each in with_sides(views) if each.version is not None)
    return {table: max(versions) for table, versions in grouped(known).items()}


def _is_started(view: TableView) -> bool:
    return any(at is not None for at in view.positions.values())


def _places(view: TableView) -> dict[TopicPartition, int | None]:
    """Next offset to read of each partition of a topic; of one that came after the first start that is 0."""
    start = 0 if _is_started(view) else None
    found = {p: view.positions.get(p) for p in range(view.partitions)}
    return {TopicPartition(view.topic, p): start if at is None else at for p, at in found.items()}


def _unknown(tables: Collection[str], problem: str) -> tuple[Completeness, ...]:
    return tuple(Completeness(name, None, 0.0, problem=problem) for name in sorted(tables))
