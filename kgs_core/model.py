"""The nouns that every room shares, immutable; and how many of them are put together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, NewType, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")
_N = TypeVar("_N", int, float)

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


def grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """Key -> all its values, keys and values in the order given."""
    found: dict[_K, list[_V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def by_topic(values: Mapping[TopicPartition, _V]) -> dict[str, dict[int, _V]]:
    """Topic -> number of a partition -> its value, in the order given."""
    found: dict[str, dict[int, _V]] = {}
    for tp, value in values.items():
        found.setdefault(tp.topic, {})[tp.partition] = value
    return found


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topic -> numbers of its partitions, each once, in the order given."""
    return {topic: [*numbers] for topic, numbers in by_topic(dict.fromkeys(partitions)).items()}


def whole_sum(values: Iterable[_N | None]) -> _N | None:
    """The sum; None, which is not zero, when one of them is not known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None


def known_sum(values: Sequence[int | None]) -> int | None:
    """The sum of those that are known; None when there are some, and none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known or not values else None


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
