"""Metrics that `kgs metrics` serves: looks at a group again and again, keeps the last result. Reads only."""

import logging
import threading
import time
from contextlib import suppress
from importlib.metadata import version

from kgs_core.config import Settings
from kgs_core.errors import KgsError
from kgs_core.kafka.record_times import RecordTimes
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.rule import Fault
from kgs_core.lake.topics.stats import LakeSnapshot, each_once, with_sides
from kgs_core.metrics import METRICS
from kgs_core.model import TopicPartition
from kgs_core.prometheus.exposition import MetricsPage
from kgs_core.reporting.audit_json import COUNTED
from kgs_core.reporting.metric_counters import GroupCounters
from kgs_core.reporting.metric_samples import LakeFigures, Sample, samples
from kgs_core.reporting.status import GroupStatus
from kgs_core.runtime.fencings import Fencings
from kgs_core.runtime.group_status import GroupWatch
from kgs_core.system.closing import Closing

_log = logging.getLogger(__name__)
_RECORDS_TIMEOUT_S = 3.0
_HOUR_S = 3600.0


class MetricsReader(Closing):
    """Looks at one group; any thread may call `page`, one thread the rest. A context manager.

    A failed look leaves no figures: what was true a minute ago may be wrong. Counters continue from their last
    values.
    """

    def __init__(
        self, settings: Settings, *, per_partition: bool, lag_seconds: bool, audit_every_h: float | None = None
    ) -> None:
        """Connects with the first look. `lag_seconds` needs the right to read the topics."""
        self._settings = settings
        self._per_partition = per_partition
        self._watch: GroupWatch | None = None
        self._times = RecordTimes(settings) if lag_seconds and per_partition else None
        self._reads_records = lag_seconds
        self._counters = GroupCounters()
        self._fencings = Fencings(settings)
        self._moved_at: dict[str, tuple[dict[TopicPartition, int], float]] = {}
        self._errors = 0
        self._page = MetricsPage(settings.group)
        self._audits = _Audits(settings, audit_every_h) if audit_every_h is not None else None

    def close(self) -> None:
        """End all connections, and audits."""
        self._disconnect()
        self._fencings.close()
        if self._times is not None:
            self._times.close()
        if self._audits is not None:
            self._audits.stop()

    def page(self) -> MetricsPage:
        """Result of the last look."""
        return self._page

    @property
    def has_looked(self) -> bool:
        """Whether the last look has found the group."""
        return any(one.metric == "kgs_exporter_look_timestamp_seconds" for one in self._page.samples)

    def look(self) -> tuple[str, ...]:
        """Look once; problems, a line each. An unexpected error is raised.

        Raises:
            Exception: an unexpected error; no figure stays then, either.
        """
        try:
            problems = self._look()
        except Exception as e:
            self._disconnect()
            self._publish([])
            self._errors += 1
            if not isinstance(e, KgsError):
                raise
            return (str(e),)
        self._errors += bool(problems)
        return problems

    def _look(self) -> tuple[str, ...]:
        if self._watch is None:
            self._watch = GroupWatch(self._settings, self._counters.take, reads_records=self._reads_records)
            self._counters.connected()
        found = self._watch.look()
        now_s = time.time()
        problems = list(found.facts.problems)
        try:
            self._fencings.look()
        except KgsError as e:
            problems.append(str(e))
        lake = self._lake(found, self._watch.snapshot, now_s, problems)
        shown = [one for one in samples(found, lake) if self._per_partition or not METRICS[one.metric].per_partition]
        shown.append(Sample("kgs_exporter_look_timestamp_seconds", (), now_s))
        self._publish(shown, failed=bool(problems))
        return tuple(problems)

    def _publish(self, shown: list[Sample], *, failed: bool = True) -> None:
        own = [
            Sample("kgs_exporter_errors_total", (), self._errors + failed),
            Sample("kgs_build", (version("kgs"),), 1.0),
        ]
        if self._fencings.count is not None:
            own.append(Sample("kgs_controller_fenced_total", (), self._fencings.count))
        audits = self._audits.samples() if self._audits is not None else ()
        every = (*shown, *audits, *self._counters.samples(), *own)
        self._page = MetricsPage(self._settings.group, every, self._counters.histograms)

    def _lake(
        self, found: GroupStatus, snapshot: LakeSnapshot | None, now_s: float, problems: list[str]
    ) -> LakeFigures:
        if snapshot is None:
            return LakeFigures()
        positions: dict[TopicPartition, int] = {}
        moved: dict[str, dict[TopicPartition, int]] = {}
        for view in snapshot.tables:
            places = {TopicPartition(view.topic, p): at for p, at in view.positions.items() if at is not None}
            positions |= places
            moved.setdefault(view.table, {}).update(places)
        tables: dict[str, dict[str, float | None]] = {}
        for table in each_once(with_sides(snapshot.tables)):
            places = moved.get(table.table, {})  # of a side table nobody says when it was moved last
            known, moved_s = self._moved_at.get(table.table, ({}, 0.0))
            if any(known.get(p, at) != at for p, at in places.items()):  # unknown for a look is not moved
                moved_s = now_s
            self._moved_at[table.table] = ({**known, **places}, moved_s)
            tables[table.table] = {
                "kgs_table_rows": table.rows,
                "kgs_table_files": table.files,
                "kgs_table_bytes": table.size_bytes,
                "kgs_table_dead_letters_total": table.dead_letters,
                "kgs_table_last_commit_timestamp_seconds": moved_s or None,
            }
        return LakeFigures(tables, positions, self._lag_seconds(found, positions, now_s, problems))

    def _lag_seconds(
        self, found: GroupStatus, positions: dict[TopicPartition, int], now_s: float, problems: list[str]
    ) -> dict[TopicPartition, float]:
        lags = found.facts.lags
        ages = {tp: 0.0 for tp in positions if lags.get(tp) == 0}
        behind = {tp: at for tp, at in positions.items() if lags.get(tp)}
        if self._times is None:
            return ages
        try:
            stamps = self._times.at(behind, _RECORDS_TIMEOUT_S)
        except KgsError as e:
            problems.append(str(e))
            return ages
        return ages | {tp: max(0.0, now_s - stamp / 1000) for tp, stamp in stamps.items()}

    def _disconnect(self) -> None:
        if self._watch is not None:
            with suppress(KgsError):
                self._watch.close()
            self._watch = None


_AUDITED_AT = "kgs_audit_timestamp_seconds"
AGAIN_AFTER = 10
"""A failed audit is retried after the interval divided by this."""


class _Audits:
    """Audits the lake at intervals, in a thread of its own, since an audit may take long."""

    def __init__(self, settings: Settings, every_h: float) -> None:
        self._settings = settings
        self._every_s = every_h * _HOUR_S
        self._found: tuple[Sample, ...] = ()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audits", daemon=True)
        self._thread.start()

    def samples(self) -> tuple[Sample, ...]:
        """Findings of the last audit, empty before the first, and the interval."""
        return (*self._found, Sample("kgs_audit_every_seconds", (), self._every_s))

    def stop(self) -> None:
        """Start no further audit."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            found = self._audited()
            self._found = found or self._found
            self._stop.wait(self._every_s if found else self._every_s / AGAIN_AFTER)

    def _audited(self) -> tuple[Sample, ...]:
        try:
            found = audit_lake(self._settings, with_log=True)
        except Exception as e:  # noqa: BLE001 - the time of the last audit tells that this one is missing
            _log.warning("audit not made: %s", e, exc_info=not isinstance(e, KgsError))
            return ()
        counts = {fault: sum(table.count(fault) for table in found.tables) for fault in COUNTED}
        rows = [Sample("kgs_audit_findings", (fault.value,), count) for fault, count in counts.items()]
        odd = [f for t in found.tables for p in t.partitions for f in p.findings if f.fault not in COUNTED]
        rows.append(Sample("kgs_audit_findings", (Fault.CONTRADICTION.value,), len(odd)))
        if found.derived:
            rows.append(Sample("kgs_audit_findings", ("newest_rows",), sum(each.wrong for each in found.derived)))
        problems = [table.problem for table in found.tables] + [each.problem for each in found.derived]
        if unread := [problem for problem in problems if problem]:  # so the audit is not whole
            _log.warning("audit not made of %d tables: %s", len(unread), unread[0])
            return (*rows, *(one for one in self._found if one.metric == _AUDITED_AT))
        return (*rows, Sample(_AUDITED_AT, (), time.time()))
