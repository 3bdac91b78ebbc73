"""Readings of a cluster with replicas: a partition's size is that of its leader's log, and of no other copy."""

import pytest

from kgs_core.kafka.admin import TopicDescription
from kgs_core.model import TopicId, TopicPartition
from kgs_core.monitor.kafka import partition_sizes

LEADERS = {0: 1, 1: 2, 2: 3}
CLUSTER = {"id": "id", "start": 0, "end": 10, "size": 1000}
BEHIND = 7


class Admin:
    """Three partitions, each led by another broker."""

    def __init__(self, *_):
        pass

    def list_topics(self):
        return ["t", "other"]

    def describe(self, topics):
        assert set(topics) <= {"t"}
        return {topic: TopicDescription(TopicId(CLUSTER["id"]), len(LEADERS), LEADERS) for topic in topics}


class Offsets:
    """Leaders and offsets of the same; `asked` counts the partitions whose starts were asked."""

    def __init__(self, *_):
        self.asked = 0

    def layout(self, is_wanted):
        return {topic: dict(LEADERS) for topic in ("t", "other") if is_wanted(topic)}

    def offsets(self, wanted, which):
        tps = [tp for tps in wanted.values() for tp in tps]
        assert all(LEADERS[tp.partition] == broker for broker, tps in wanted.items() for tp in tps)
        self.asked += len(tps) if which == "earliest" else 0
        return dict.fromkeys(tps, CLUSTER["start" if which == "earliest" else "end"])

    def close(self):
        pass


class Brokers:
    """kafka-python's client: each broker has a copy of every partition, those that follow a little behind."""

    def __init__(self):
        self.gone = None

    def describe_log_dirs(self, wanted, brokers):
        (broker,) = brokers
        assert broker != self.gone
        copies = [
            {
                "partition_index": p,
                "partition_size": CLUSTER["size"] * (p + 1) - BEHIND * (LEADERS[p] != broker),
                "is_future_key": False,
            }
            for p in wanted["t"]
        ]
        return [{"broker": broker, "log_dirs": [{"topics": [{"name": "t", "partitions": copies}]}]}]

    def close(self):
        pass


@pytest.fixture
def sizes(monkeypatch, settings):
    monkeypatch.setattr(partition_sizes, "admin_of", Admin)
    monkeypatch.setattr(partition_sizes, "ClusterOffsets", Offsets)
    monkeypatch.setattr(partition_sizes, "open_kafka_python", lambda *_: Brokers())
    sizes = partition_sizes.PartitionSizes(settings)
    yield sizes
    sizes.close()


def test_of_three_copies_the_leaders_alone_counts(sizes):
    """All copies together would be three times the write speed, and three times the consumers."""
    reading = sizes.read()
    found = {tp.partition: (log.leader, log.size_bytes) for tp, log in reading.partitions.items()}
    assert found == {0: (1, 1000), 1: (2, 2000), 2: (3, 3000)}
    assert reading.unknown == {}


def test_when_another_copy_leads_its_size_is_read_and_its_leader_named(sizes, monkeypatch):
    """Leaders' logs differ a little, so a new one begins a new window: `restarted`."""
    monkeypatch.setitem(LEADERS, 0, 3)
    log = sizes.read().partitions[TopicPartition("t", 0)]
    assert (log.leader, log.size_bytes) == (3, 1000)


def test_starts_are_asked_seldom_and_at_once_where_a_log_has_become_shorter(sizes, monkeypatch):
    for _ in range(3):
        sizes.read()
    assert sizes._offsets.asked == len(LEADERS)
    monkeypatch.setitem(CLUSTER, "size", 900)
    monkeypatch.setitem(CLUSTER, "start", 5)
    assert {log.log_start for log in sizes.read().partitions.values()} == {5}
    monkeypatch.setitem(CLUSTER, "start", 6)
    assert {log.log_start for log in sizes.read().partitions.values()} == {5}
    sizes._starts_due_s = 0.0
    assert {log.log_start for log in sizes.read().partitions.values()} == {6}


def test_a_topic_made_again_is_known_by_its_id_at_once_when_it_is_shorter_else_soon(sizes, monkeypatch):
    monkeypatch.setitem(CLUSTER, "start", 4)
    sizes.read()
    monkeypatch.setitem(CLUSTER, "id", "another")
    assert {log.topic_id for log in sizes.read().partitions.values()} == {"id"}
    monkeypatch.setitem(CLUSTER, "end", 3)
    monkeypatch.setitem(CLUSTER, "start", 0)
    logs = sizes.read().partitions.values()
    assert {(log.topic_id, log.log_start, log.end_offset) for log in logs} == {("another", 0, 3)}
    monkeypatch.setitem(CLUSTER, "id", "a third")
    sizes._ids_due_s = 0.0
    assert {log.topic_id for log in sizes.read().partitions.values()} == {"a third"}
