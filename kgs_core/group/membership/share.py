"""Which partitions a consumer reads when nobody assigns them: a fixed share, named at its start."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgs_core.errors import ConfigError

_ITEM = re.compile(r"([a-zA-Z0-9._-]{1,249}):(\*|\d+(?:-\d+)?)")
MAX_PARTITION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class NamedPartitions:
    """Exactly the partitions that were named; `*` takes those of a topic that appear later, too.

    Attributes:
        ranges: (topic, first, last); last None means: all from first on.
    """

    ranges: tuple[tuple[str, int, int | None], ...]

    def of(self, topic: str, partitions: int) -> frozenset[int]:
        """Numbers of the partitions of `topic` that are ours, of 0..partitions-1."""
        return frozenset(
            p
            for name, first, last in self.ranges
            if name == topic
            for p in range(first, min(partitions, partitions if last is None else last + 1))
        )

    def missing(self, partitions: Mapping[str, int]) -> list[str]:
        """What was named and is not there, in words, a line for each range; `partitions` are how many a topic has."""
        found = []
        for topic, first, last in self.ranges:
            count = partitions.get(topic, 0)
            if last is not None and last >= count:
                low = max(first, count)
                which = f"{topic}:{low}" if low == last else f"{topic}:{low}-{last}"
                found.append(
                    f"{which}: not there: the topic has {count} partitions" if count else f"{topic}: no such topic"
                )
            elif last is None and not count:
                found.append(f"{topic}: no such topic")
        return found


@dataclass(frozen=True, slots=True)
class EqualShare:
    """Every `count`-th partition of every topic, beginning with the `index`-th (1-based)."""

    index: int
    count: int

    def of(self, topic: str, partitions: int) -> frozenset[int]:
        """Numbers of the partitions of `topic` that are ours; topics begin at different shares, by their name."""
        shift = sum(topic.encode())
        return frozenset(p for p in range(partitions) if (p + shift) % self.count == self.index - 1)


Share = NamedPartitions | EqualShare


def parse_partitions(text: str) -> NamedPartitions:
    """`topic:0-3,other:5,third:*` as a share; a ConfigError names each item that is not of this form."""
    items = [item.strip() for item in text.split(",") if item.strip()]
    problems, ranges = [], []
    for item in items:
        match = _ITEM.fullmatch(item)
        found = _range(match.group(2)) if match else None
        if match is None or found is None:
            problems.append(f"--partitions: '{item}': write topic:0-3, topic:5 or topic:*")
        else:
            ranges.append((match.group(1), *found))
    if not items:
        problems.append("--partitions: empty: write topic:0-3,other:* or use --share 1/2")
    problems += _doubled(ranges)
    if problems:
        raise ConfigError(problems)
    return NamedPartitions(tuple(ranges))


def parse_share(text: str) -> EqualShare:
    """`2/3`, the second of three equal shares; refuses another form by a ConfigError."""
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
    if match is None or not 1 <= int(match.group(1)) <= int(match.group(2)):
        raise ConfigError([f"--share: '{text}': write 1/2 for the first of two equal shares"])
    return EqualShare(int(match.group(1)), int(match.group(2)))


def _range(text: str) -> tuple[int, int | None] | None:
    if text == "*":
        return 0, None
    first, _, last = text.partition("-")
    low, high = int(first), int(last or first)
    return (low, high) if low <= high <= MAX_PARTITION else None


def _doubled(ranges: Iterable[tuple[str, int, int | None]]) -> list[str]:
    seen: dict[str, list[tuple[int, float]]] = {}
    problems = []
    for topic, low, last in ranges:
        high = float("inf") if last is None else last
        if any(low <= other_high and other_low <= high for other_low, other_high in seen.get(topic, [])):
            problems.append(f"--partitions: {topic}:{low}... is named twice: name each partition once")
        seen.setdefault(topic, []).append((low, high))
    return problems
