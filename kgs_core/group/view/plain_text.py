"""Names, numbers and reasons as people are shown them: partitions as ranges, texts of others on one line."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime

from kgs_core.model import TopicPartition, numbers_by_topic

UNKNOWN = "?"


def ranges(partitions: Collection[TopicPartition]) -> str:
    """As `orders:0-11,14, clicks:3`, sorted."""
    topics = numbers_by_topic(sorted(partitions))
    return ", ".join(f"{printable(topic)}:{','.join(_runs(numbers))}" for topic, numbers in topics.items())


def clock_text(time_ms: int) -> str:
    """A moment, ms since 1970, as `2026-11-28 07:30:00Z`."""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"


def count(number: int | None) -> str:
    """A number of things, with separators; `?` when it is not known."""
    return UNKNOWN if number is None else f"{number:,}"


def megabytes(number: float | None, places: int = 3) -> str:
    """Bytes as MB (10^6 bytes); `?` when they are not known."""
    return UNKNOWN if number is None else f"{number / 1e6:.{places}f}"


def counted(number: int, noun: str) -> str:
    """`1 partition`, `1,200 partitions`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """On one line, and with what is no character for people (control sequences, say) as its escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(text.split()))


def _runs(numbers: list[int]) -> Iterator[str]:
    first = last = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == last + 1:
            last = number
            continue
        yield str(first) if first == last else f"{first}-{last}"
        if number is not None:
            first = last = number
