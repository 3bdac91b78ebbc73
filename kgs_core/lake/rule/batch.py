"""A batch of one topic, written out and waiting for its commit."""

from collections.abc import Mapping, Sequence
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
