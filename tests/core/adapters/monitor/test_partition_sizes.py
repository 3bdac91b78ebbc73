"""Readings of a cluster with replicas: a partition's size is that of its leader's log, and of no other copy."""

import pytest

from kgs_core.adapters.kafka.admin import TopicDescription
from kgs_core.adapters.monitor import partition_sizes
from kgs_core.config import parse_settings
from kgs_core.model import TopicId, TopicPartition

SETTINGS = b"""
group: g
kafka: {bootstrap_servers: "127.0.0.1:9"}
lake: {root: /lake}
topics: [{topic: t}]
"""
LEADERS = {0: 1, 1: 2, 2: 3}
BEHIND = 7


class Admin:
    """Three partitions, each led by another broker."""

    def __init__(self, *_):
        pass

    def list_topics(self):
        return ["t", "other"]

    def describe(self, topics):
        assert topics == ["t"]
        return {"t": TopicDescription(TopicId("id"), len(LEADERS), LEADERS)}

    def known_offsets(self, tps, which):
        return dict.fromkeys(tps, 0 if which == "earliest" else 10)


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
                "partition_size": 1000 * (p + 1) - BEHIND * (LEADERS[p] != broker),
                "is_future_key": False,
            }
            for p in wanted["t"]
        ]
        return [{"broker": broker, "log_dirs": [{"topics": [{"name": "t", "partitions": copies}]}]}]

    def close(self):
        pass


@pytest.fixture
def sizes(monkeypatch):
    monkeypatch.setattr(partition_sizes, "KafkaAdmin", Admin)
    monkeypatch.setattr(partition_sizes, "open_kafka_python", lambda *_: Brokers())
    sizes = partition_sizes.PartitionSizes(parse_settings(SETTINGS, "kgs.yaml", {}))
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
