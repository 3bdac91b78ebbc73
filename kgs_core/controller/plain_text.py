"""Names and reasons as people are shown them: partitions as ranges, texts of others on one line."""

from collections.abc import Collection, Iterator

from kgs_core.model import TopicPartition


def ranges(partitions: Collection[TopicPartition]) -> str:
    """As `orders:0-11,14, clicks:3`, sorted."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return ", ".join(f"{printable(topic)}:{','.join(_runs(numbers))}" for topic, numbers in topics.items())


def printable(text: str) -> str:
    """On one line, and with what is no character for people (control sequences, say) as its escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(text.split()))


def _runs(numbers: list[int]) -> Iterator[str]:
    """Ascending numbers as `0-11`, `14`."""
    first = last = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == last + 1:
            last = number
            continue
        yield str(first) if first == last else f"{first}-{last}"
        if number is not None:
            first = last = number
