"""One topic as a consumer holds it: its table, and how far reading has come."""

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kgs_core.ingest.round.progress import TopicProgress
from kgs_core.ingest.round.stops import StopCause
from kgs_core.ingest.worker.topic_job import TopicJob, TopicPlan
from kgs_core.lake.topics.topic_table import TopicTable

_log = logging.getLogger(__name__)


class TopicState:
    """A topic's table beside its `progress`, the value that rounds work on; what changes in it is logged here.

    Attributes:
        is_at_work: a thread beside the rounds is at the table, which is for one thread at a time: no round reads the
            topic, and nobody else asks it.
    """

    def __init__(self, table: TopicTable) -> None:
        self.table = table
        self.is_at_work = False
        self._plan = _plan_of(table)
        self._progress = TopicProgress(
            table.ids.topic, table.ids.topic_id, uses_dataframe=table.spec.rule.transform is not None
        )

    @property
    def progress(self) -> TopicProgress:
        """How far reading has come, and what stands still."""
        return self._progress

    @progress.setter
    def progress(self, new: TopicProgress) -> None:
        old, self._progress = self._progress, new
        if old.stops is not new.stops:
            _log_stops(old, new)

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._progress.topic

    @property
    def tables(self) -> Iterator[tuple[str, str, Any]]:
        """The topic, with the path and the columns of each table that its rows go into."""
        spec = self.table.spec
        for table in dict.fromkeys([spec.table, *spec.side_tables.values()]):
            yield self.topic, table, self.table.schema

    def job(self, progress: TopicProgress | None = None) -> TopicJob:
        """What a worker must know, at `progress`; in the middle of a round that is not yet the one kept here."""
        at = (progress or self._progress).at
        if self._plan.schema is not self.table.schema:  # it is given columns now and then
            self._plan = _plan_of(self.table)
        return TopicJob(self._plan, at.dead_letter_marks, at.leader_epochs, at.side_marks)

    def give_up(self, partitions: frozenset[int]) -> None:
        """Own these no longer, and forget all about them: what the table says of them changes from now on."""
        self._progress = self._progress.without(partitions)  # no stop ends by it that were worth a word

    def own(self, partitions: frozenset[int]) -> None:
        """Own exactly these, from the table's positions; a stopped partition whose position was moved goes on.

        Raises:
            PortError: it does not answer, or breaks the guarantee.
        """
        self.progress = self._progress.owning(partitions, self.table.positions(partitions))

    def stop(self, reasons: Mapping[int, str], cause: StopCause) -> None:
        """Stop reading these partitions; they stay owned."""
        self.progress = self._progress.stopped(reasons, cause, time.monotonic())


def _plan_of(table: TopicTable) -> TopicPlan:
    return TopicPlan.of(table.spec, table.ids.topic_id, table.schema, table.columns)


def _log_stops(old: TopicProgress, new: TopicProgress) -> None:
    """Say once what stands still, and once that it goes on: not again for each look."""
    before, after = old.reported_stops, new.reported_stops
    for p, stop in after.items():
        if p not in before or before[p].reason != stop.reason:
            _log.error("stopped topic=%s partition=%d reason=%r", new.topic, p, stop.reason)
    for p in before.keys() - after.keys():
        if p in new.owned:
            _log.info("resumed topic=%s partition=%d offset=%s", new.topic, p, new.positions.get(p))
    for p, stop in new.stops.items():
        if p not in after and (p not in old.stops or replace(old.stops[p], trial_until=None) != stop):
            _log.warning("topic=%s partition=%d waits: %s", new.topic, p, stop.reason)
