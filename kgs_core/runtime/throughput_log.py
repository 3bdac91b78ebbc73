"""Log of a consumer: throughput every few seconds, topics that turn bad; a status file for outside observers."""

import json
import logging
import math
import os
import time
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from kgs_core.group.membership.bad_share import BEGINS_ABOVE, bad_topics
from kgs_core.group.membership.flat_out import FlatOutMeter, FullRound
from kgs_core.group.protocol import FlatOut, WorkDone
from kgs_core.ingest.driver.round_report import RoundReport
from kgs_core.ingest.opening.topic_state import TopicState
from kgs_core.model import ConsumerId
from kgs_core.system.files import replacement, write_privately
from kgs_core.system.usage import hardware, own_usage

WINDOW_S = 5.0
STATUS_S = 1.0
WEIGH_S = 10.0
"""Time between two looks at the use of the processes: as often as a full report goes out."""
_ADDED = ("batches", "records", "consumed_bytes", "refused", "fetch_s", "write_s", "commit_s")
_log = logging.getLogger(__name__)


class ConsumerStatus:
    """Adds up rounds over a trailing window of `WINDOW_S`; `work` is the sums over all of them."""

    def __init__(self, consumer: ConsumerId, status_file: Path | None) -> None:
        self.records = 0
        self.bad = BadTopics()
        self._consumer = consumer
        self._file = status_file
        self._has_warned = False
        self._rounds: deque[tuple[float, RoundReport]] = deque()
        self._began = self._logged = self._written = time.monotonic()
        self.work = WorkDone()
        self._meter = FlatOutMeter(hardware())
        self._full_since: float | None = None  # when the last round ended, if it was full
        self._weighed = -math.inf

    def note(self, report: RoundReport, topics: Collection[TopicState]) -> None:
        """Add a round that has ended."""
        now = time.monotonic()
        for problem in report.problems:
            _log.warning("kafka: %s", problem)
        self.records += report.records
        self._add_up(report, now)
        self.bad.look(topics)
        self._rounds.append((now, report))
        while self._rounds[0][0] < now - WINDOW_S:
            self._rounds.popleft()
        if report.batches:
            _log.debug("batch %s", _figures(report))
        if now - self._logged >= WINDOW_S:
            self._logged = now
            window = self._window()
            if window.batches:
                _log.info("batches=%d refused=%d %s", window.batches, window.refused, _figures(window))
        if now - self._written >= STATUS_S:
            self._written = now
            self.write(topics)

    @property
    def flat_out(self) -> FlatOut | None:
        """Flat-out speed of this consumer; None: too little is known."""
        return self._meter.reading(time.monotonic())

    def _add_up(self, report: RoundReport, now: float) -> None:
        sums = self.work
        new = replace(
            sums,
            commits=sums.commits + report.batches,
            commit_s=sums.commit_s + report.commit_s,
            refused=sums.refused + report.refused,
            outrun=(sums.outrun or 0) + report.outrun,
        )
        if report.is_full and self._full_since is not None:
            self._meter = self._meter.after(_full_round(report, now - self._full_since), now, round(time.time() * 1000))
            new = replace(
                new,
                full_bytes=sums.full_bytes + report.consumed_bytes,
                full_s=sums.full_s + now - self._full_since,
            )
        self._full_since = now if report.is_full else None
        if now >= self._weighed + WEIGH_S:
            self._weighed = now
            usage = own_usage()
            new = replace(new, cpu_s=usage.cpu_s, memory_bytes=usage.memory_bytes)
        self.work = new

    @property
    def bytes_per_s(self) -> float:
        """Consumed (uncompressed) bytes per second over the window."""
        return self._window().consumed_bytes / max(min(time.monotonic() - self._began, WINDOW_S), STATUS_S)

    def write(self, topics: Iterable[TopicState]) -> None:
        """Replace the status file atomically, if it can be written."""
        if self._file is None:
            return
        held = [state.progress for state in topics]
        window = self._window()
        status = {
            "consumer": self._consumer,
            "pid": os.getpid(),
            "partitions": sum(len(topic.owned) for topic in held),
            "records": self.records,
            "consumed_bytes_per_s": self.bytes_per_s,
            "latency_s": window.latency_s,
            "bad_shares": self.bad.shares,
            "stopped": {f"{t.topic}:{p}": stop.reason for t in held for p, stop in t.reported_stops.items()},
        }
        try:
            with replacement(self._file) as draft:
                write_privately(draft, json.dumps(status))
        except OSError as e:  # as on a full disk: to read is what matters
            if not self._has_warned:
                _log.warning("status file %s cannot be written: %s: reading continues", self._file, e.strerror or e)
            self._has_warned = True
        else:
            self._has_warned = False

    def _window(self) -> RoundReport:
        since = time.monotonic() - WINDOW_S
        reports = [report for at, report in self._rounds if at >= since]
        latency_s = max((r.latency_s for r in reports if r.latency_s is not None), default=None)
        return RoundReport(**{n: sum(getattr(r, n) for r in reports) for n in _ADDED}, latency_s=latency_s)


def _full_round(report: RoundReport, seconds: float) -> FullRound:
    """A full round with its waiting time: in the reader, and for commits while nothing was being read."""
    unread_s = max(0.0, seconds - report.fetch_s - report.write_s)
    return FullRound(seconds, min(seconds, unread_s + report.waited_s), report.consumed_bytes, report.offsets)


def _figures(report: RoundReport) -> str:
    times = (
        f"fetch_ms={report.fetch_s * 1e3:.0f} write_ms={report.write_s * 1e3:.0f} commit_ms={report.commit_s * 1e3:.0f}"
    )
    return f"records={report.records} bytes={report.consumed_bytes} {times}"


class BadTopics:
    """A consumer's topics with too many bad records: logged when that begins and when it ends.

    Attributes:
        shares: topic -> share of bad records (0 to 1), of the topics that are bad.
    """

    def __init__(self) -> None:
        self.shares: dict[str, float] = {}

    def look(self, topics: Iterable[TopicState]) -> None:
        """Update the shares; topics of which nothing is owned or was read are not judged."""
        states = {s.topic: s for s in topics if s.progress.owned and s.progress.bad_share is not None}
        found = {topic: state.progress.bad_share or 0.0 for topic, state in states.items()}
        before, self.shares = self.shares, bad_topics(found, self.shares)
        for topic in self.shares.keys() - before.keys():
            _log.warning(
                "too many bad records topic=%s share=%.3f max=%.3f dead_letters=%s: fix the rule or the producer",
                topic, found[topic], BEGINS_ABOVE, states[topic].table.spec.dead_letters_table,
            )  # fmt: skip
        for topic in before.keys() - self.shares.keys():
            if topic in found:  # else another consumer has it now
                _log.info("few bad records again topic=%s share=%.3f max=%.3f", topic, found[topic], BEGINS_ABOVE)
