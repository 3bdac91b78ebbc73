"""Transactions that Kafka leaves open for ever in a partition of the Assignments, on a real broker.

It does so by a race of its own (KAFKA-20734); here a late batch of a controller that has been fenced makes one. A fake
would only say what we believe of the broker: which state it tells of, and which markers it takes.
"""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from kafka.protocol.producer.produce import ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import TransientError
from kgs_core.group.protocol import MemberAssignment, Message, Received
from kgs_core.group.protocol.codec import encode
from kgs_core.group.topics import topic_reader
from kgs_core.group.topics.controller_writer import KafkaControllerWriter
from kgs_core.group.topics.hanging_transactions import HangingTransactions
from kgs_core.group.topics.topic_reader import KafkaGroupTopicReader
from kgs_core.group.topics.topics import GroupTopic
from kgs_core.group.topics.write_id import WriteIds, write_id_of
from kgs_core.kafka.clients import consumer_of
from kgs_core.kafka.kafka_python import open_kafka_python
from kgs_core.kafka.records import Headers, read_until
from kgs_core.model import OffsetRange, TopicPartition
from tests.system.group_topics import A, B, C, Group, gives, group_on, messages_of, target
from tests.waiting import wait_until

pytestmark = pytest.mark.slow(15)
VERIFICATION = "transaction.partition.verification.enable"


@pytest.fixture(scope="module")
def careless(kafka: EmbeddedKafka) -> Iterator[EmbeddedKafka]:
    """The shared broker, which takes batches of no transaction for as long."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    try:
        for operation, value in ((AlterConfigOpType.SET, "false"), (AlterConfigOpType.DELETE, "")):
            resource = ConfigResource(ConfigResource.Type.BROKER, "1")
            resource.add_incremental_config(ConfigEntry(VERIFICATION, value, incremental_operation=operation))
            for answer in admin.incremental_alter_configs([resource]).values():
                answer.result(20)
            if operation is AlterConfigOpType.SET:
                yield kafka
    finally:
        del admin


@pytest.fixture
def group(careless: EmbeddedKafka, topic_prefix: str) -> Iterator[Group]:
    with group_on(careless.bootstrap_servers, topic_prefix) as group:
        yield group


def curing_reader(group: Group) -> KafkaGroupTopicReader:
    """As the controller has it."""
    topics = group.again()
    group.opened.append(KafkaGroupTopicReader(topics, 2.0, HangingTransactions(topics)))
    return group.opened[-1]


def leave_open(group: Group, message: MemberAssignment, headers: Headers) -> None:
    """A batch of the group's present controller, in a partition that its coordinator has never heard of."""
    client = open_kafka_python(group.settings, 10.0)
    try:
        transactional_id = f"{group.settings.group}-controller"
        known = client.describe_transactions([transactional_id])[transactional_id]
        builder = DefaultRecordBatchBuilder(2, 0, 1, known.producer_id, known.producer_epoch, 0, 1 << 20)
        key, value = encode(message)
        builder.append(0, None, key, value, list(headers))
        topic = ProduceRequest.TopicProduceData
        data = topic(
            name=group.name(GroupTopic.ASSIGNMENTS),
            partition_data=[topic.PartitionProduceData(index=message.member.consumer, records=bytes(builder.build()))],
        )
        request = ProduceRequest(
            transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=[data], max_version=11
        )

        async def send() -> object:
            return await client._manager.send(request, node_id=1)

        answer = client._manager.run(send)
        (partition,) = answer.responses[0].partition_responses
        assert partition.error_code == 0, partition
    finally:
        client.close()


def headers_at(group: Group, consumer: int) -> Headers:
    """Those of the first record in a consumer's partition."""
    reader = consumer_of(group.settings)
    tp = TopicPartition(group.name(GroupTopic.ASSIGNMENTS), consumer)
    (record,) = read_until(reader, tp, OffsetRange(0, 1), 20.0, where="the broker")
    assert write_id_of(record) is not None
    reader.close()
    return record.headers() or []


def test_what_hangs_of_a_write_that_nobody_has_seen_is_aborted_and_the_controller_goes_on(group: Group) -> None:
    group.writer().write(target("before"), [gives(1, A)], [])
    leave_open(group, gives(2, B), WriteIds().next_headers())
    with pytest.raises(TransientError, match="still open"):
        group.reader(timeout_s=2).read_to_end()
    writer, reader = group.writer(), curing_reader(group)
    expected = [target("before"), gives(1, A)]
    assert {*map(repr, messages_of(reader.read_to_end()))} == {*map(repr, expected)}
    writer.write(None, [gives(2, C)], [])
    expected.append(gives(2, C))
    assert {*map(repr, messages_of(group.reader(timeout_s=5).read_to_end()))} == {*map(repr, expected)}


def test_what_hangs_of_a_write_that_is_committed_elsewhere_is_committed(group: Group) -> None:
    group.writer().write(target("before"), [gives(1, A)], [])
    leave_open(group, gives(2, B), headers_at(group, 1))
    group.writer()
    expected = {*map(repr, [target("before"), gives(1, A), gives(2, B)])}
    assert {*map(repr, messages_of(curing_reader(group).read_to_end()))} == expected
    assert {*map(repr, messages_of(group.reader(timeout_s=5).read_to_end()))} == expected


def test_what_may_still_end_and_what_is_somebody_elses_is_left_alone(group: Group) -> None:
    group.writer().write(target("before"), [gives(1, A)], [])
    leave_open(group, gives(2, B), WriteIds().next_headers())
    with pytest.raises(TransientError, match=r"left alone: it is as new as the controller's own"):
        curing_reader(group).read_to_end()
    group.writer()
    with group.transaction(gives(3, C)) as other:
        with pytest.raises(TransientError, match=r"metadata:3: producer \d+ .* left alone: it does not belong to"):
            curing_reader(group).read_to_end()
        other.commit_transaction(20)
    expected = [target("before"), gives(1, A), gives(3, C)]
    assert {*map(repr, messages_of(curing_reader(group).read_to_end()))} == {*map(repr, expected)}


def test_what_this_controller_has_committed_and_kafka_has_not_carried_out_is_carried_out(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no reason to read anew: it would wait for the consumer, and that one for its Assignment."""
    topics = group.again()
    writer, reader = KafkaControllerWriter(topics), KafkaGroupTopicReader(topics, 5.0, HangingTransactions(topics))
    group.opened += [writer, reader]
    writer.fence()
    reader.read_to_end()
    writer.write(target("before"), [gives(1, A)], [])
    leave_open(group, gives(2, B), headers_at(group, 1))
    topics.written[TopicPartition(group.name(GroupTopic.ASSIGNMENTS), 2)] = 0, time.monotonic()
    monkeypatch.setattr(topic_reader, "READ_TIMEOUT_S", 1.0)
    found: list[Received[Message]] = []
    wait_until(lambda: found.extend(reader.poll(0.2)) or len(found) == 3, 30, "all that was written")
    assert {*map(repr, messages_of(found))} == {*map(repr, [target("before"), gives(1, A), gives(2, B)])}
