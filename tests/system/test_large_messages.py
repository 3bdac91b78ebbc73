"""A Target of several records on a real broker: only there are transactions, which hold its parts together."""

import dataclasses
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from kgs_core.adapters.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.adapters.group.controller_writer import KafkaControllerWriter
from kgs_core.adapters.group.topic_reader import KafkaGroupTopicReader
from kgs_core.adapters.group.topics import MAX_RECORD_BYTES, GroupTopic
from kgs_core.adapters.kafka.client_config import admin_client, reading_client
from kgs_core.adapters.kafka.records import read_until
from kgs_core.model import ConsumerId, OffsetRange, TopicPartition
from kgs_core.protocol import Target
from kgs_core.protocol.record_parts import records_of
from tests.system.group_topics import A, Group, gives, group_on, target
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow(60), pytest.mark.timeout(600)]


@pytest.fixture
def group(kafka: EmbeddedKafka, topic_prefix: str) -> Iterator[Group]:
    with group_on(kafka.bootstrap_servers, topic_prefix) as group:
        yield group


def large_target(reason: str, count: int) -> Target:
    """A Target that takes several records: some 9 MB with 200,000 partitions."""
    everything = {TopicPartition(f"a-topic-with-a-long-name-{n}", 0): ConsumerId(1 + n % 3) for n in range(count)}
    return dataclasses.replace(target(reason), assignment=everything)


def test_a_target_of_several_records_is_there_as_a_whole_or_not_at_all(group: Group) -> None:
    """Only a broker has transactions: killed between any two parts, the Target before it stands."""
    first, large = large_target("first", 300_000), large_target("large", 200_000)
    writer = group.writer()
    written = writer.write(first, [gives(1, A)], [])
    many = records_of(first)
    assert written[0].offset == len(many) - 1 > 1
    parts = records_of(large)
    assert 1 < len(parts) < len(many)
    own = {"transactional.id": f"{group.settings.group}-controller", "log_level": 0}
    for killed_after in range(1, len(parts) + 1):
        killed = Producer({**admin_client(group.settings), **own, "message.max.bytes": MAX_RECORD_BYTES})
        killed.init_transactions(20)
        killed.begin_transaction()
        for key, value in parts[:killed_after]:
            killed.produce(group.name(GroupTopic.ASSIGNMENTS), value, key, 0)
        assert killed.flush(20) == 0
        writer = group.writer()  # its fence ends what was open
        assert group.reader().read_to_end() == written, killed_after
    reader = group.reader()
    reader.read_to_end()
    second = writer.write(large, [], [])
    assert wait_until(lambda: reader.poll(1), 20, "the second Target") == second
    topics = group.again()
    both = KafkaGroupTopicReader(topics), KafkaControllerWriter(topics)
    group.opened += both
    both[1].fence()
    both[0].read_to_end()
    (third,) = both[1].write(target("small again"), [], [])
    log = group.reader().read_to_end()
    assert [each for each in log if isinstance(each.message, Target)] == [written[0], *second, third]
    removed = set(records_left(group, GroupTopic.ASSIGNMENTS, 0))
    assert removed == {b"target"}, "after compaction nothing is left of the parts"


def records_left(group: Group, which: GroupTopic, partition: int) -> list[bytes]:
    """Keys whose newest record is no tombstone: what compaction keeps."""
    consumer = Consumer(reading_client(group.settings))
    tp = TopicPartition(group.name(which), partition)
    end = group.admin.offsets([tp], "latest")[tp]
    newest: dict[bytes, bytes | None] = {}
    for record in read_until(consumer, tp, OffsetRange(0, end), 20, where="the test"):
        newest[record.key() or b""] = record.value()
    consumer.close()
    return [key for key, value in newest.items() if value is not None]
