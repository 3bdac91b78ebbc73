"""Snapshot for the live table, as plain values; None is "not known", which is not zero."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from kgs_core.demo.replay import DEFAULT_DATE, DEFAULT_START_AT
from kgs_core.lake.topics.stats import LakeSnapshot
from kgs_core.model import TopicPartition, whole_sum
from kgs_core.reporting.status import GroupStatus


@dataclass(frozen=True, slots=True)
class Produced:
    """Figures that the generator gives of itself.

    Attributes:
        partitions: records that the brokers acknowledged.
        value_bytes: bytes of their values, uncompressed.
        replayed_s: seconds of the replay that were sent.
        finished: whether these are its final figures.
    """

    partitions: Mapping[TopicPartition, int]
    value_bytes: int
    failed: int
    replayed_s: float
    finished: bool

    @property
    def records(self) -> int:
        """Of all partitions."""
        return sum(self.partitions.values())

    @property
    def topics(self) -> dict[str, int]:
        """Records by topic."""
        found: dict[str, int] = {}
        for tp, records in self.partitions.items():
            found[tp.topic] = found.get(tp.topic, 0) + records
        return found


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """The group's history in numbers.

    Attributes:
        rebalances: changes of the target that moved partitions.
        moved: partitions that these moved.
        rscore: the sum of what they cost.
        mean_consumers: how many read something, over the time since the first one did; None before that.
    """

    rebalances: int
    moved: int
    rscore: float
    mean_consumers: float | None
    max_consumers: int


@dataclass(frozen=True, slots=True)
class DemoSnapshot:
    """The whole demonstration at one instant.

    Attributes:
        elapsed_s: seconds since the command began.
        simulated: New York time of the replay.
        produced_bytes_per_s: values, uncompressed, over the last few seconds.
        began_ms: wall clock when the command began, ms since 1970.
        news: of the group since the last snapshot, one line each.
        problems: what could not be learned of the group.
    """

    stage: str
    elapsed_s: float
    simulated: datetime | None
    produced: Produced | None
    produced_bytes_per_s: float | None
    lake: LakeSnapshot
    control: str
    group: GroupStatus | None
    figures: GroupFigures
    began_ms: int = 0
    news: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def produced_records(self) -> int | None:
        """Records produced: those in the log, or the tally, which is up to a second old, if it knows of more."""
        ends = [end for table in self.lake.tables for end in table.ends.values()]
        in_log = sum(end for end in ends if end is not None)
        if self.produced is not None:
            return max(self.produced.records, in_log)
        return in_log if ends and None not in ends else None

    @property
    def can_take_load(self) -> bool:
        """Whether a consumer has joined, or the group sleeps until something is written."""
        group = self.group
        return group is not None and bool(group.idle or any(row.process for row in group.consumers))

    @property
    def has_rows(self) -> bool:
        """Whether anything has arrived in the lake."""
        return any(table.rows for table in self.lake.tables)


def read_produced(file: Path) -> Produced | None:
    """The generator's tally; None before there is one."""
    try:
        tree = json.loads(file.read_text())
    except (OSError, ValueError):  # not there yet
        return None
    if not isinstance(tree, dict):
        return None
    partitions = {}
    for name, records in tree["partitions"].items():
        topic, _, number = name.rpartition(":")
        partitions[TopicPartition(topic, int(number))] = int(records)
    return Produced(partitions, sum(tree["bytes"].values()), tree["failed"], tree["replayed_s"], tree["finished"])


def lag_of(lake: LakeSnapshot, partitions: Iterable[TopicPartition]) -> int | None:
    """Offsets of these that the lake has not yet; None when one is not known."""
    tables = {table.topic: table for table in lake.tables}
    return whole_sum(tables[tp.topic].lag_of(tp.partition) if tp.topic in tables else None for tp in partitions)


def simulated_time(replayed_s: float, time_factor: float) -> datetime:
    """New York time that the replay has reached after `replayed_s` seconds."""
    return datetime.combine(DEFAULT_DATE, DEFAULT_START_AT) + timedelta(seconds=replayed_s * time_factor)
