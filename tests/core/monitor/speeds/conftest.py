"""Readings of small clusters, made by hand."""

import pytest

from kgs_core.model import TopicId, TopicPartition
from kgs_core.monitor.speeds import Measure, PartitionReading, Reading, Window

TP = TopicPartition("t", 0)


@pytest.fixture
def tp():
    return TP


@pytest.fixture
def log():
    """One partition's reading; by default 100 bytes a record and nothing deleted."""

    def build(time_s, end, size="all", start=0, **changes):
        size_bytes = 100 * (end - start) if size == "all" else size
        return PartitionReading(
            **{
                "time_s": time_s,
                "offsets_s": time_s,
                "topic_id": TopicId("one"),
                "leader": 1,
                "log_start": start,
                "end_offset": end,
            }
            | {"size_bytes": size_bytes}
            | changes
        )

    return build


@pytest.fixture
def reading():
    def build(time_s, logs=(), unknown=()):
        partitions = dict(logs) if isinstance(logs, dict) else ({TP: logs} if logs else {})
        return Reading(time_s, 1_700_000_000_000, "here", Measure.LOG_DIRS, partitions, dict(unknown))

    return build


@pytest.fixture
def speeds_of(reading):
    """The speed of one partition after each of its logs, in a window of 30 s and 10 s at least."""

    def run(logs, window=None):
        window = window or Window(30.0, 10.0)
        return [window.add(reading(each.time_s, each)).speeds[TP] for each in logs]

    return run
