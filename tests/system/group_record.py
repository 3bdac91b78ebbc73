"""What a group has left behind: every record of its topics, checked, and when each partition was read."""

import time
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kgs_core.config import Settings
from kgs_core.group.protocol import (
    Heartbeat,
    Incarnation,
    MemberAssignment,
    Message,
    Phase,
    Received,
    Report,
    Tombstone,
)
from kgs_core.group.topics.reader import GroupReader, Refusals
from kgs_core.group.topics.topics import GroupTopic, GroupTopics
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client
from kgs_core.model import TopicPartition
from tests.system.director import commit_times
from tests.world.group_events import Event, Fact, FactKind, in_time, silences
from tests.world.group_history import check_history

READ_S = 60.0
Records = Sequence[Received[Message]]


def now() -> float:
    """The clock that commits are stamped with, and on this machine the broker's."""
    return time.time()  # noqa: TID251 - as above


def load_records(settings: Settings) -> Records:
    """Every committed record of the group's topics, from the beginning; none of them is another's."""
    admin = KafkaAdmin(admin_client(settings))
    topics = GroupTopics(settings, admin)
    tps = [tp for kind in GroupTopic for tp in topics.partitions(kind)]
    refusals = Refusals()
    reader = GroupReader(topics, admin.offsets(tps, "earliest"), refusals)
    try:
        records = [each.received for each in reader.take_up_to(admin.offsets(tps, "latest"), READ_S)]
    finally:
        reader.close()
    assert refusals.count == 0
    return records


def find_problems(
    settings: Settings, records: Records, deaths: Mapping[Incarnation, float], *, with_silences: bool = True
) -> tuple[str, ...]:
    """What in the records breaks S1, S4, S6, S7 or S9.

    A tombstone counts from 10 s before it stands, since its death was confirmed by then: nothing done in that time
    could be wrong. So it is left out where an incarnation's last word or `deaths` tell when it let go.

    Args:
        settings: of the group.
        records: all of them.
        deaths: when incarnations were killed, seconds since 1970.
        with_silences: gaps between reports free partitions.
    """
    gone = {*deaths, *gone_in_order(records)}
    events: list[Event] = [
        record
        for record in records
        if not (isinstance(record.message, Tombstone) and record.message.member.incarnation in gone)
    ]
    events += [Fact(incarnation, FactKind.DEAD, round(at * 1000)) for incarnation, at in deaths.items()]
    if with_silences:
        events += silences(records, settings.membership.suspect_after_s)
    return check_history(in_time(events), max_consumers=settings.packing.max_consumers)


def gone_in_order(records: Records) -> frozenset[Incarnation]:
    """Who has said its last word."""
    return frozenset(
        record.message.member.incarnation
        for record in records
        if isinstance(record.message, Report | Heartbeat) and record.message.phase is Phase.ENDED
    )


def time_of_stop(records: Records, incarnation: Incarnation, tps: Collection[TopicPartition]) -> float:
    """When the first of these was taken from an incarnation that had it, seconds since 1970."""
    owned: frozenset[TopicPartition] = frozenset()
    for record in records:
        if isinstance(record.message, MemberAssignment) and record.message.member.incarnation == incarnation:
            if owned.intersection(tps) - record.message.owned:
                return record.timestamp_ms / 1000
            owned = record.message.owned
    raise AssertionError(f"nothing was taken from {incarnation}")


class Unread(NamedTuple):
    """How long a partition was not read, by the commits of the lake.

    Attributes:
        first_s: from the event to the first commit after it.
        longest_s: the longest time between two commits of which the later one came after the event.
    """

    first_s: float
    longest_s: float

    def __str__(self) -> str:
        """In ms."""
        return f"{self.first_s * 1e3:.0f} ({self.longest_s * 1e3:.0f})"


def unread(lake: Path, tps: Collection[TopicPartition], at: float) -> dict[TopicPartition, Unread]:
    """For each partition, what an event at `at` (seconds since 1970) did to it; each was committed before and after."""
    found = {}
    for tp in sorted(tps):
        times = commit_times(lake, tp)
        gaps = [later - earlier for earlier, later in pairwise(times) if later > at]
        found[tp] = Unread(min(t for t in times if t > at) - at, max(gaps))
    return found
