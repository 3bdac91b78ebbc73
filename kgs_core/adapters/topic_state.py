"""One topic as a consumer holds it: its table, what is owned, positions, and what stands still and why."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from kgs_core.adapters.finish import TopicJob
from kgs_core.adapters.topic_table import Positions, TopicTable
from kgs_core.model import OffsetRange, TopicBatch

FIRST_RETRY_S = 10.0
LAST_RETRY_S = 300.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why a partition stands still; it stays owned.

    Attributes:
        position: the lake's position when it stopped. When somebody moves that (an accepted loss), reading goes on.
        retry_at: on `time.monotonic`; None: only a moved position or a restart ends it.
    """

    reason: str
    position: int
    retry_at: float | None = None


@dataclass(slots=True)
class TopicState:
    """State of one topic in one consumer.

    Attributes:
        owned: our partitions.
        positions: partition -> next offset to read, as the table has it.
        marks: partition -> offset below which dead letters are written.
        stopped: partitions that are owned and not read.
        bytes_per_record: as read of late, uncompressed.
    """

    table: TopicTable
    owned: frozenset[int] = frozenset()
    positions: dict[int, int] = field(default_factory=dict)
    marks: dict[int, int | None] = field(default_factory=dict)
    stopped: dict[int, Stopped] = field(default_factory=dict)
    waiting_since: float | None = None
    bytes_per_record: float = 1000.0
    failures: int = 0

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.table.ids.topic

    @property
    def uses_dataframe(self) -> bool:
        """Whether the user's Spark transform finishes this topic."""
        return self.table.spec.rule.transform is not None

    @property
    def active(self) -> dict[int, int]:
        """Position of each partition that is to be read."""
        return {p: self.positions[p] for p in sorted(self.owned) if p not in self.stopped}

    def job(self) -> TopicJob:
        """What a worker must know."""
        table = self.table
        spec = table.spec
        return TopicJob(
            self.topic, table.ids.topic_id, spec.rule, spec.table, spec.letters_table, table.schema, dict(self.marks)
        )

    def own(self, partitions: frozenset[int]) -> None:
        """Own exactly these, from the positions that the table has now; nothing is changed where it cannot be asked."""
        found = self.table.positions(set(partitions))
        self.owned = partitions
        self._take_over(found)

    def give_up(self, partitions: frozenset[int]) -> None:
        """Own these no longer, and forget all about them: what the table says of them changes from now on."""
        self.owned -= partitions
        for partition in partitions:
            self.positions.pop(partition, None)
            self.marks.pop(partition, None)
            self.stopped.pop(partition, None)

    def reload(self) -> None:
        """Take positions and marks from the table; a stopped partition whose position was moved goes on."""
        self.own(self.owned)

    def _take_over(self, found: Positions) -> None:
        self.positions = dict(found.next_offset)
        self.marks = dict(found.letter_marks)
        for partition, stop in list(self.stopped.items()):
            if partition not in self.owned or self.positions.get(partition) != stop.position:
                _log.info(
                    "resumed topic=%s partition=%d offset=%s", self.topic, partition, self.positions.get(partition)
                )
                del self.stopped[partition]

    def advance(self, batch: TopicBatch) -> None:
        """Take over the positions of a batch that has been committed."""
        self.positions |= {p: r.end for p, r in batch.ranges.items()}
        if batch.letters is not None:
            self.marks |= {p: max(r.end, self.marks.get(p) or 0) for p, r in batch.ranges.items()}
        if batch.records:
            self.bytes_per_record = 0.7 * self.bytes_per_record + 0.3 * batch.consumed_bytes / batch.records
        self.failures = 0

    def stop(self, partitions: Mapping[int, str], retry_at: float | None = None) -> None:
        """Stop reading these partitions, loudly; they stay owned."""
        for partition, reason in partitions.items():
            if partition in self.owned and partition not in self.stopped:
                self.stopped[partition] = Stopped(reason, self.positions.get(partition, 0), retry_at)
                _log.error("stopped topic=%s partition=%d reason=%r", self.topic, partition, reason)

    def fail(self, reason: str, now: float) -> None:
        """Stop the whole topic for a while: its transform failed, which may pass."""
        self.failures += 1
        delay = min(FIRST_RETRY_S * 2 ** (self.failures - 1), LAST_RETRY_S)
        self.stop(dict.fromkeys(self.owned, reason), now + delay)

    def retry_due(self, now: float) -> None:
        """Let go on what was stopped for a while only."""
        for partition, stop in list(self.stopped.items()):
            if stop.retry_at is not None and now >= stop.retry_at:
                del self.stopped[partition]

    def exact_ranges(self, planned: Mapping[int, OffsetRange]) -> dict[int, OffsetRange]:
        """Planned ranges, and empty ones for the other active partitions, so that the client keeps them assigned."""
        return {p: planned.get(p, OffsetRange(position, position)) for p, position in self.active.items()}
