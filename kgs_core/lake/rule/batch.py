"""A batch of one topic, written out and waiting for its commit; and where the topic's tables stand before and after."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kgs_core.model import OffsetRange, TopicId
from kgs_core.ports import FileWritten


@dataclass(frozen=True, slots=True)
class SidePart:
    """Part of a batch that a route puts into one side table.

    Attributes:
        files: its rows; one at least.
        marks: partition -> the side table's position that the rows were filtered by (None: none yet).
    """

    files: Sequence[FileWritten]
    marks: Mapping[int, int | None]


@dataclass(frozen=True, slots=True)
class TopicBatch:
    """Batch that one round read from one topic, written out and waiting for its commit.

    Attributes:
        ranges: partition -> offsets read. Every one of them moves the table's position, rows or not.
        files: the rows of the topic's own table; none when the ranges held none.
        dead_letters: records that could not be parsed; None when there were none.
        dead_letter_marks: partition -> the dead-letter table's position that the dead letters were filtered by (None:
            none yet).
        unsettled: partitions with dead letters that another reading might not find (`judgements`).
        sides: side table -> its part; a table without new rows is left out.
        consumed_bytes: keys, values and headers as read, uncompressed.
        oldest_ms: Kafka timestamp of the oldest record, ms since 1970; None without records.
        bad_records: those of `records` that could not be taken, whether their dead letters are new or already in the
            lake.
        leader_epochs: partition -> leader epoch of the last record read; a partition without one is left out.
    """

    topic: str
    topic_id: TopicId
    ranges: Mapping[int, OffsetRange]
    files: Sequence[FileWritten]
    dead_letters: FileWritten | None = None
    dead_letter_marks: Mapping[int, int | None] = field(default_factory=dict)
    sides: Mapping[str, SidePart] = field(default_factory=dict)
    records: int = 0
    consumed_bytes: int = 0
    oldest_ms: int | None = None
    bad_records: int = 0
    leader_epochs: Mapping[int, int] = field(default_factory=dict)
    unsettled: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class TablePositions:
    """Positions in the lake of some partitions.

    Attributes:
        next_offset: partition -> next offset to read.
        dead_letter_marks: partition -> offset below which dead letters are written already; None where there are none.
        leader_epochs: partition -> leader epoch of the last record committed; absent where it is not known.
        side_marks: side table -> partition -> offset below which its rows are written already.
    """

    next_offset: Mapping[int, int] = field(default_factory=dict)
    dead_letter_marks: Mapping[int, int | None] = field(default_factory=dict)
    leader_epochs: Mapping[int, int] = field(default_factory=dict)
    side_marks: Mapping[str, Mapping[int, int | None]] = field(default_factory=dict)

    def of(self, partitions: Collection[int]) -> "TablePositions":
        """Those of these partitions alone."""
        return TablePositions(
            {p: self.next_offset[p] for p in partitions},
            {p: self.dead_letter_marks.get(p) for p in partitions},
            {p: epoch for p, epoch in self.leader_epochs.items() if p in partitions},
            {table: {p: marks.get(p) for p in partitions} for table, marks in self.side_marks.items()},
        )

    def after(self, batch: TopicBatch) -> "TablePositions":
        """With a batch that has been committed."""
        ends = {p: r.end for p, r in batch.ranges.items()}
        # An older epoch may have ended before the new position, which would look like a log that was truncated.
        epochs = {p: epoch for p, epoch in self.leader_epochs.items() if p not in ends} | dict(batch.leader_epochs)
        letters, sides = self.dead_letter_marks, self.side_marks
        return TablePositions(
            {**self.next_offset, **ends},
            letters if batch.dead_letters is None else _moved(letters, ends),
            epochs,
            {table: _moved(marks, ends) if table in batch.sides else marks for table, marks in sides.items()},
        )


def _moved(marks: Mapping[int, int | None], ends: Mapping[int, int]) -> dict[int, int | None]:
    return {**marks, **{p: max(end, marks.get(p) or 0) for p, end in ends.items()}}
