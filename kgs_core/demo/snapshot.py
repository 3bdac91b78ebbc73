"""What the live table shows, as plain values; None is "not known", which is not zero."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from kgs_core.adapters.lake_view import LakeSnapshot
from kgs_core.consumer.share import EqualShare
from kgs_core.demo.replay import DEFAULT_DATE, DEFAULT_START_AT
from kgs_core.model import TopicPartition


@dataclass(frozen=True, slots=True)
class ConsumerRow:
    """One consumer.

    Attributes:
        bytes_per_s: consumed, uncompressed.
        lag: offsets of its partitions that the lake has not yet.
        latency_s: from Kafka's timestamp of the oldest record of a batch to its commit.
        state: a word or two.
    """

    number: int
    pid: int | None
    partitions: int | None
    bytes_per_s: float | None
    lag: int | None
    latency_s: float | None
    state: str


@dataclass(frozen=True, slots=True)
class Produced:
    """What the generator says of itself.

    Attributes:
        partitions: records that the brokers acknowledged.
        value_bytes: bytes of their values, uncompressed.
        failed: records given up.
        replayed_s: seconds of the replay that were sent.
        finished: whether this is its last word.
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
class DemoSnapshot:
    """The whole demonstration at one instant.

    Attributes:
        stage: what is going on, in words.
        elapsed_s: seconds since the command began.
        simulated: New York time of the replay.
        produced_bytes_per_s: values, uncompressed, over the last few seconds.
    """

    stage: str
    elapsed_s: float
    simulated: datetime | None
    produced: Produced | None
    produced_bytes_per_s: float | None
    consumers: tuple[ConsumerRow, ...]
    lake: LakeSnapshot

    @property
    def produced_records(self) -> int | None:
        """Records produced: those in the log, or the tally, which is up to a second old, if it knows of more."""
        ends = [end for table in self.lake.tables for end in table.ends.values()]
        in_log = sum(end for end in ends if end is not None)
        if self.produced is not None:
            return max(self.produced.records, in_log)
        return in_log if ends and None not in ends else None

    @property
    def has_rows(self) -> bool:
        """Whether anything has arrived in the lake."""
        return any(table.rows for table in self.lake.tables)


def read_produced(file: Path) -> Produced | None:
    """The generator's tally; None before there is one."""
    tree = _load(file)
    if tree is None:
        return None
    partitions = {}
    for name, records in tree["partitions"].items():
        topic, _, number = name.rpartition(":")
        partitions[TopicPartition(topic, int(number))] = int(records)
    return Produced(partitions, sum(tree["bytes"].values()), tree["failed"], tree["replayed_s"], tree["finished"])


def read_consumer(file: Path, number: int, pid: int | None, absence: str, lag: int | None) -> ConsumerRow:
    """A consumer's row out of its status file; one that an earlier process left does not count.

    Args:
        file: its status file.
        number: its id.
        pid: of the running process; None without one.
        absence: what to say when there is no running process.
        lag: offsets of its partitions that the lake has not yet.
    """
    status = _load(file)
    if pid is None or status is None or status.get("pid") != pid:
        return ConsumerRow(number, pid, None, None, lag, None, "starting" if pid is not None else absence)
    stopped = status.get("stopped") or {}
    state = f"{len(stopped)} partitions stopped" if stopped else "reading"
    speed = status.get("consumed_bytes_per_s")
    return ConsumerRow(number, pid, status.get("partitions"), speed, lag, status.get("latency_s"), state)


def lag_of_share(lake: LakeSnapshot, share: EqualShare) -> int | None:
    """Offsets that the lake has not yet of the partitions of a share; None when one is not known."""
    lags = [table.lag_of(p) for table in lake.tables for p in share.of(table.topic, len(table.ends))]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if lags and len(known) == len(lags) else None


def simulated_time(replayed_s: float, time_factor: float) -> datetime:
    """New York time that the replay has reached after `replayed_s` seconds."""
    return datetime.combine(DEFAULT_DATE, DEFAULT_START_AT) + timedelta(seconds=replayed_s * time_factor)


def _load(file: Path) -> dict[str, Any] | None:  # JSON
    try:
        tree = json.loads(file.read_text())
    except (OSError, ValueError):  # not there yet
        return None
    return tree if isinstance(tree, dict) else None
