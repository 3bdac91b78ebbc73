"""Where reading begins while a transaction is open, on a real broker: only it knows what "committed reads" gives."""

from confluent_kafka import Producer

from kgs_core.config import parse_settings, resolve_tables
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.kafka.client_config import reading_client
from kgs_core.kafka.committed_offsets import GroupOffsets
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import TopicId, TopicPartition
from tests.system.small_sink import transactional
from tests.waiting import wait_until

_2026 = 1_767_225_600_000  # 2026-01-01T00:00:00Z


def test_each_start_begins_before_an_open_transaction_and_committed_where_the_group_was(
    kafka, admin, topic_prefix, tmp_path
):
    topic = f"{topic_prefix}a"
    admin.create_topic(topic, 1)
    plain = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "all"})
    for n in range(5):
        plain.produce(topic, b"v", partition=0, timestamp=_2026 + 1000 * n)
    assert plain.flush(20) == 0
    producer = transactional(kafka, topic)
    producer.begin_transaction()
    for n in range(5, 8):
        producer.produce(topic, b"v", partition=0, timestamp=_2026 + 1000 * n)
    assert producer.flush(20) == 0

    def first(start: str) -> int:
        text = f"""
group: {topic_prefix}g
kafka: {{bootstrap_servers: "{kafka.bootstrap_servers}"}}
lake: {{root: {tmp_path}}}
topics: [{{topic: {topic}, start: "{start}"}}]
"""
        settings = parse_settings(text.encode(), "test", {})
        offsets = GroupOffsets(reading_client(settings), settings.group)
        try:
            opener = TopicOpener(settings, open_lake(settings.lake), admin, offsets, lambda *_: None)
            return opener._first_offsets(resolve_tables(settings, [topic])[topic], TopicId("id"), 1)[0]
        finally:
            offsets.close()

    assert first("earliest") == 0
    assert first("latest") == 5
    assert first("timestamp:2026-01-01T00:00:02Z") == 2
    assert first("timestamp:2026-01-01T00:00:06Z") == 5
    assert first("committed") == 0
    committed = GroupOffsets({"bootstrap.servers": kafka.bootstrap_servers}, f"{topic_prefix}g")
    committed.report(TopicId("id"), "another", {TopicPartition(topic, 0): 3})
    committed.close()
    assert first("committed") == 3
    producer.commit_transaction(20)
    wait_until(lambda: first("latest") == 9, 20, "the transaction's marker is written")
    assert first("timestamp:2026-01-01T00:00:06Z") == 6
