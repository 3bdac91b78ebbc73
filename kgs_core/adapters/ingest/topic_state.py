"""One topic as a consumer holds it: its table, and how far reading has come."""

import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from kgs_core.adapters.ingest.process_batch import TopicJob
from kgs_core.adapters.lake.topic_table import TopicTable
from kgs_core.consumer.round.progress import TablePositions, TopicProgress
from kgs_core.consumer.round.stops import Cause, Stop

_log = logging.getLogger(__name__)


class TopicState:
    """A topic's table beside its `progress`, the value that rounds work on; what changes in it is logged here."""

    def __init__(self, table: TopicTable, owned: frozenset[int] = frozenset()) -> None:
        self.table = table
        self._progress = TopicProgress(
            table.ids.topic, table.ids.topic_id, uses_dataframe=table.spec.rule.transform is not None, owned=owned
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
    def uses_dataframe(self) -> bool:
        """Whether the user's Spark transform finishes this topic."""
        return self._progress.uses_dataframe

    @property
    def owned(self) -> frozenset[int]:
        """Our partitions."""
        return self._progress.owned

    @property
    def positions(self) -> Mapping[int, int]:
        """Partition -> next offset to read, as the table has it."""
        return self._progress.positions

    @property
    def active(self) -> dict[int, int]:
        """Position of each partition that is to be read."""
        return self._progress.active

    @property
    def stopped(self) -> dict[int, Stop]:
        """Partitions that are owned and stand still, as far as people are told."""
        return self._progress.reported_stops

    @property
    def bytes_per_record(self) -> float:
        """As read of late, uncompressed."""
        return self._progress.bytes_per_record

    @property
    def bad_share(self) -> float | None:
        """See `TopicProgress.bad_share`."""
        return self._progress.bad_share

    @property
    def recent_records(self) -> int:
        """How many records `bad_share` is told from."""
        return self._progress.recent_records

    def job(self, progress: TopicProgress | None = None) -> TopicJob:
        """What a worker must know, at `progress`; in the middle of a round that is not yet the one kept here."""
        table, at = self.table, progress or self._progress
        spec = table.spec
        return TopicJob(
            self.topic,
            table.ids.topic_id,
            spec.rule,
            spec.table,
            spec.dead_letters_table,
            table.schema,
            dict(at.marks),
            dict(at.epochs),
        )

    def own(self, partitions: frozenset[int]) -> None:
        """Own exactly these, from the positions that the table has now; nothing is changed where it cannot be asked."""
        self.progress = self._progress.owning(partitions, self.load_positions(partitions))

    def load_positions(self, partitions: frozenset[int]) -> TablePositions:
        """Where the table stands.

        Raises:
            PortError: it does not answer, or breaks the guarantee.
        """
        return self.table.positions(set(partitions))

    def give_up(self, partitions: frozenset[int]) -> None:
        """Own these no longer, and forget all about them: what the table says of them changes from now on."""
        self._progress = self._progress.without(partitions)  # no stop ends by it that were worth a word

    def reload(self) -> None:
        """Take positions and marks from the table; a stopped partition whose position was moved goes on."""
        self.own(self.owned)

    def stop(self, reasons: Mapping[int, str], cause: Cause) -> None:
        """Stop reading these partitions; they stay owned."""
        self.progress = self._progress.stopped(reasons, cause, time.monotonic())


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
