"""Time up to which a table is complete: every record with an earlier timestamp is a row, or a dead letter. Pure.

Theory of operation. A partition is read up to its position. If that is the end of its log, every record that was there
when the end was asked is read, and a later one has a later timestamp: the partition is complete up to that moment. If
not, it is complete up to the timestamp of its first unread record. A table is complete up to the least of these, less
`lateness_s`: with LogAppendTime for clocks of brokers that differ, and for records that replicas do not have yet; with
CreateTime for the producers' delay, too. The end counts records of open transactions, which are unread however far a
reader of committed records may read. What is not known makes the table's time unknown, never later.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from kgs_core.model import TopicPartition

HOUR_MS = 3_600_000
_AHEAD_MS = 60_000
"""How far clocks may be ahead of ours: the time of a record from further away says nothing of those behind it."""


@dataclass(frozen=True, slots=True)
class PartitionEdge:
    """Edge between what is read and what is not.

    Attributes:
        position: next offset to read; None: nothing was read yet.
        first: offset of the first record that the log still has; None: not known.
        end: offset of the next record to be written, committed or not; None: not known.
        unread_ms: timestamp of the first record at or behind the position, or of one before it (all others were
            appended later), ms since 1970; None: not known.
        empty_to: offset up to which there are only markers of transactions at or behind the position; None: not known.
    """

    partition: TopicPartition
    position: int | None
    first: int | None
    end: int | None
    unread_ms: int | None = None
    empty_to: int | None = None

    @property
    def is_read(self) -> bool:
        """Whether there is nothing to be read."""
        at = self.first if self.position is None else self.position
        if self.end is None or at is None:
            return False
        # Of an end before the position records were lost: others may come at offsets that nobody reads any more
        return self.end == at or self._has_markers_only(at, self.end)

    def _has_markers_only(self, at: int, end: int) -> bool:
        """Whether there is no record from the position to the end, nor was one that is deleted."""
        return self.first is not None and self.empty_to is not None and self.first <= at < end <= self.empty_to


@dataclass(frozen=True, slots=True)
class Lateness:
    """How much later than their timestamps the latest rows of a table have come, at least.

    Attributes:
        since_ms: earliest of their timestamps, ms since 1970.
        p50_s: half of the rows came within so many seconds; `p999_s`: 99.9 %; `most_s`: all.
    """

    rows: int
    since_ms: int
    p50_s: float
    p999_s: float
    most_s: float


@dataclass(frozen=True, slots=True)
class Completeness:
    """How far one table is complete.

    Attributes:
        until_ms: every record with an earlier timestamp is in the table, ms since 1970; None: not known.
        lateness_s: how much later than its timestamp a record may come.
        held_by: the partition that is behind all others; None: all is read, or the time is not known.
        problem: why the time is not known; empty: it is.
        learnt: how late rows really came; None: not asked, or not known.
    """

    table: str
    until_ms: int | None
    lateness_s: float
    held_by: TopicPartition | None = None
    problem: str = ""
    learnt: Lateness | None = None

    @property
    def until(self) -> datetime | None:
        """`until_ms` as a time, UTC."""
        return None if self.until_ms is None else datetime.fromtimestamp(self.until_ms / 1000, UTC)

    def is_complete_at(self, moment: datetime) -> bool:
        """Whether every record with a timestamp before `moment` is in the table."""
        return self.until is not None and moment <= self.until


def completeness(table: str, edges: Collection[PartitionEdge], asked_ms: int, lateness_s: float) -> Completeness:
    """How far a table is complete.

    Args:
        edges: of all partitions of all its topics.
        asked_ms: a moment before the first of their ends was asked, ms since 1970.
    """
    least, held_by = asked_ms, None
    for edge in sorted(edges, key=lambda edge: edge.partition):
        if edge.is_read:
            continue
        if problem := _unknown(edge, asked_ms):
            return Completeness(table, None, lateness_s, edge.partition, f"{edge.partition}: {problem}")
        if edge.unread_ms is not None and edge.unread_ms < least:
            least, held_by = edge.unread_ms, edge.partition
    return Completeness(table, least - round(lateness_s * 1000), lateness_s, held_by)


def _unknown(edge: PartitionEdge, asked_ms: int) -> str:
    """Why nobody knows what is unread; empty: it is known."""
    if edge.end is None or edge.first is None:
        return "Kafka does not say where its log begins and ends"
    if edge.position is not None and edge.position < edge.first:
        return f"offsets {edge.position} to {edge.first - 1} were deleted before they were read: see `kgs status`"
    if edge.position is not None and edge.position > edge.end:
        return f"its log ends at {edge.end}, before the position {edge.position}: see `kgs status`"
    if edge.unread_ms is None:
        return "the first unread record has not come, or has no timestamp"
    if not 0 <= edge.unread_ms <= asked_ms + _AHEAD_MS:
        return f"the first unread record's timestamp, {edge.unread_ms} ms, is before 1970 or in the future"
    return ""
