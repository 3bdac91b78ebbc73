"""The names under which a Delta table's log keeps positions: one Delta `txn` action each."""

import re
from dataclasses import dataclass

from kgs_core.model import TopicId

_APP_ID = re.compile(r"([^/@]+)/([^/@]+)@([^/@]+)/(\d+)(/start|/gap/(\d+))?")


@dataclass(frozen=True, slots=True)
class AppIds:
    """Application ids of one life of one topic in one group.

    The topic's id is part of each, so positions of a deleted topic never apply to one made again under its name.
    """

    group: str
    topic: str
    topic_id: TopicId

    def position(self, partition: int) -> str:
        """Version = next offset to read."""
        return f"{self.group}/{self.topic}@{self.topic_id}/{partition}"

    def start(self, partition: int) -> str:
        """Version = the offset where reading began, for good."""
        return f"{self.position(partition)}/start"

    def gap(self, partition: int, from_offset: int) -> str:
        """Version = end of a loss that an operator accepted: offsets [from_offset, version) are not in the table."""
        return f"{self.position(partition)}/gap/{from_offset}"


@dataclass(frozen=True, slots=True)
class ParsedAppId:
    """An application id taken apart. `gap_from` and `is_start` tell the kind; neither means a position."""

    group: str
    topic: str
    topic_id: TopicId
    partition: int
    is_start: bool
    gap_from: int | None


def parse_app_id(text: str) -> ParsedAppId | None:
    """The parts of an id that `AppIds` wrote; None for anybody else's."""
    match = _APP_ID.fullmatch(text)
    if match is None:
        return None
    group, topic, topic_id, partition, tail, gap = match.groups()
    return ParsedAppId(
        group, topic, TopicId(topic_id), int(partition), tail == "/start", int(gap) if gap is not None else None
    )
