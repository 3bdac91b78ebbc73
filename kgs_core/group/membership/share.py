"""Which partitions a consumer reads when nobody assigns them: a fixed share, named at its start."""

import re
from dataclasses import dataclass

from kgs_core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class EqualShare:
    """Every `count`-th partition of every topic, beginning with the `index`-th (1-based)."""

    index: int
    count: int

    def of(self, topic: str, partitions: int) -> frozenset[int]:
        """Numbers of the partitions of `topic` that are ours; topics begin at different shares, by their name."""
        shift = sum(topic.encode())
        return frozenset(p for p in range(partitions) if (p + shift) % self.count == self.index - 1)


def parse_share(text: str) -> EqualShare:
    """`2/3`, the second of three equal shares; refuses another form by a ConfigError."""
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
    if match is None or not 1 <= int(match.group(1)) <= int(match.group(2)):
        raise ConfigError([f"--share: '{text}': write 1/2 for the first of two equal shares"])
    return EqualShare(int(match.group(1)), int(match.group(2)))
