"""Sample of a topic's newest records: which, and each value with its own key."""

import confluent_kafka

from kgs_core.ingest.fetch.topic_sample import sample_topic
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.model import TopicId
from tests.mock_kafka import mock_kafka


def test_the_newest_records_of_each_partition_with_their_keys(monkeypatch):
    """The mock cluster answers no question of an administrator."""
    monkeypatch.setattr(KafkaAdmin, "describe", lambda *_: {"t": TopicDescription(TopicId("id"), 2)})
    offsets = {"earliest": 0, "latest": 3}
    monkeypatch.setattr(KafkaAdmin, "offsets", lambda _, tps, which, **__: dict.fromkeys(tps, offsets[which]))
    with mock_kafka() as kafka:
        kafka.topic("t", 2)
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap})
        for n in range(6):
            producer.produce("t", f"v{n}", f"k{n}" if n != 5 else None, partition=n % 2)
        producer.flush(10)
        found = sample_topic(kafka.settings(), "t", 4, 10.0)
    pairs = sorted(zip(found.values, found.keys, strict=True))
    assert pairs == [(b"v2", b"k2"), (b"v3", b"k3"), (b"v4", b"k4"), (b"v5", None)]
    assert (found.partitions, found.is_whole) == (2, True)
