"""The names under which a Delta table's log keeps positions: one Delta `txn` action each."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kgs_core.model import TopicId

CLOSED = 2**63 - 1
"""The version of a position that was handed over: no batch begins there, and no log ends behind it."""
_APP_ID = re.compile(r"([^/@]+)/([^/@]+)@([^/@]+)/(\d+)(/start|/epoch|/gap/(\d+))?")
_HALF = 2**31  # an epoch is a positive number of 32 bits


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

    def end(self, partition: int) -> str:
        """Version = the offset where this life of the topic ended for good; its position then is CLOSED."""
        return f"{self.position(partition)}/end"

    def epoch(self, partition: int) -> str:
        """Version = `epoch_stamp` of the leader epoch of the last record before the position, where it is known."""
        return f"{self.position(partition)}/epoch"

    def gap(self, partition: int, from_offset: int) -> str:
        """Version = end of a loss that an operator accepted: offsets [from_offset, version) are not in the table."""
        return f"{self.position(partition)}/gap/{from_offset}"

    def route(self, partition: int) -> str:
        """Version = token of the route that the partition's rows go by (`route_tokens`)."""
        return f"{self.position(partition)}/route"

    def judgement(self, partition: int) -> str:
        """Version = how many readings of the partition were settled, and whether one is open (`judgements`)."""
        return f"{self.position(partition)}/judgement"

    def side(self, table: str) -> str:
        """Version = how far rows of the topic have come into this side table: claimed for them, or in use."""
        return f"{self.group}/{self.topic}@{self.topic_id}/side/{table}"

    def redriven(self, partition: int) -> str:
        """Version = how many dead letters of the partition have become rows of the table."""
        return f"{self.position(partition)}/redriven"

    def redriven_sum(self, partition: int) -> str:
        """Version = `offset_sum` of the offsets of these dead letters."""
        return f"{self.position(partition)}/redriven/sum"


@dataclass(frozen=True, slots=True)
class ParsedAppId:
    """An application id taken apart. `gap_from`, `is_start` and `is_epoch` tell the kind."""

    group: str
    topic: str
    topic_id: TopicId
    partition: int
    is_start: bool
    gap_from: int | None
    is_epoch: bool = False

    @property
    def is_position(self) -> bool:
        """Whether it is none of the other kinds."""
        return not (self.is_start or self.is_epoch or self.gap_from is not None)


def parse_app_id(text: str) -> ParsedAppId | None:
    """The parts of an id that `AppIds` wrote; None for anybody else's."""
    match = _APP_ID.fullmatch(text)
    if match is None:
        return None
    group, topic, topic_id, partition, tail, gap = match.groups()
    gap_from = int(gap) if gap is not None else None
    return ParsedAppId(
        group, topic, TopicId(topic_id), int(partition), tail == "/start", gap_from, is_epoch=tail == "/epoch"
    )


def epoch_stamp(epoch: int, position: int) -> int:
    """A leader epoch together with the position that it was known at, as one version.

    An epoch says nothing of another position: moved past markers of transactions, or by a writer that knows of no
    epochs, the position may lie behind the epoch's end, which would look as if the log had been truncated.
    """
    return (position % _HALF) * _HALF + epoch


def offset_sum(offsets: Iterable[int], before: int = 0) -> int:
    """The sum of offsets as one version: beside their number it tells whether they are the same ones."""
    return (before + sum(offsets)) % CLOSED


def epoch_at(stamp: int | None, position: int) -> int | None:
    """The leader epoch of a stamp; None where it was made at another position, or never."""
    return stamp % _HALF if stamp is not None and stamp // _HALF == position % _HALF else None
