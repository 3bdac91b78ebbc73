"""The nouns that every room shares; immutable."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, NewType

ConsumerId = NewType("ConsumerId", int)
"""Number of one reader, >= 1."""

TopicId = NewType("TopicId", str)
"""Kafka's id of one life of a topic: a topic that is deleted and made again under its old name has another."""


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """`topic:partition`, as it is written on the command line and in messages."""
        return f"{self.topic}:{self.partition}"


BytesPerSecond = float
"""Stored bytes, after compression, per second."""

WriteSpeeds = Mapping[TopicPartition, BytesPerSecond]
"""Write speed s(p) of each partition."""

Assignment = Mapping[TopicPartition, ConsumerId]
"""Partition -> the consumer that reads it."""


class OffsetRange(NamedTuple):
    """Offsets [start, end) of one partition: `end` is the next position."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FileWritten:
    """One Parquet file that lies in a table's folder and is not part of the table yet.

    Attributes:
        path: relative to the table's root.
        size: bytes.
        stats: Delta's statistics of the file as JSON text.
    """

    path: str
    size: int
    rows: int
    stats: str


@dataclass(frozen=True, slots=True)
class TopicBatch:
    """What one round read from one topic, written out and waiting for its commit.

    Attributes:
        ranges: partition -> offsets read. Every one of them moves the table's position, rows or not.
        file: the rows; None when the ranges held none.
        letters: records that could not be parsed; None when there were none.
        letter_marks: partition -> the dead-letter table's position that the letters were filtered by (None: none yet).
        consumed_bytes: keys and values as read, uncompressed.
        oldest_ms: Kafka timestamp of the oldest record, ms since 1970; None without records.
    """

    topic: str
    topic_id: TopicId
    ranges: Mapping[int, OffsetRange]
    file: FileWritten | None
    letters: FileWritten | None = None
    letter_marks: Mapping[int, int | None] = field(default_factory=dict)
    records: int = 0
    consumed_bytes: int = 0
    oldest_ms: int | None = None
