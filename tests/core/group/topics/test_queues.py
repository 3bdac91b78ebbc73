"""Which partition the Assignments of a consumer are in, where several consumers share one."""

from types import SimpleNamespace

import pytest

from kgs_core.errors import UnsafeError
from kgs_core.group.protocol import Incarnation, Member, MemberAssignment, Tombstone
from kgs_core.group.protocol.codec import encode
from kgs_core.group.topics import topic_reader
from kgs_core.group.topics.reader import GroupReader, Refusals
from kgs_core.group.topics.topic_reader import KafkaGroupTopicReader
from kgs_core.group.topics.topics import GroupTopic, GroupTopics, extra_time_s
from kgs_core.model import ConsumerId, TopicPartition

TOPIC = "kgs.g.consumer.metadata"


def topics_of(partitions, shared_by):
    topics = object.__new__(GroupTopics)
    membership = SimpleNamespace(consumers_per_metadata_partition=shared_by)
    topics.settings = SimpleNamespace(membership=membership, group="g")
    topics._names = {GroupTopic.ASSIGNMENTS: TOPIC}
    topics._known = {TOPIC: SimpleNamespace(partitions=partitions)}
    return topics


def reader_of(topics, only=None):
    """A reader without a client."""
    reader = object.__new__(GroupReader)
    reader._topics, reader._only, reader._refusals = topics, only, Refusals()
    reader._kinds = dict.fromkeys(topics.partitions(GroupTopic.ASSIGNMENTS), GroupTopic.ASSIGNMENTS)
    reader._read, reader.misplaced = [], {}
    return reader


def member(consumer, incarnation="a"):
    return Member(ConsumerId(consumer), Incarnation(incarnation))


def gives(consumer, *numbers):
    return MemberAssignment(member(consumer), frozenset(TopicPartition("t", number) for number in numbers))


def read(reader, partition, message):
    key, value = encode(message)
    record = SimpleNamespace(
        key=lambda: key, value=lambda: value, offset=lambda: 7, timestamp=lambda: (2, 0), topic=lambda: TOPIC
    )
    reader._decode(TopicPartition(TOPIC, partition), record)
    return [each.received.message for each in reader._read]


@pytest.mark.parametrize("shared_by", [1, 2, 16])
def test_every_consumer_has_one_queue_and_the_last_partition_is_full(shared_by):
    topics = topics_of(64, shared_by)
    queues = [topics.queue(ConsumerId(consumer)) for consumer in range(1, topics.highest_consumer + 1)]
    assert {queue: queues.count(queue) for queue in queues} == dict.fromkeys(range(1, 64), shared_by)


def test_a_consumer_alone_in_its_queue_has_the_partition_of_its_number():
    topics = topics_of(64, 1)
    assert [topics.queue(ConsumerId(consumer)) for consumer in range(1, 64)] == list(range(1, 64))


def test_more_partitions_move_nobody():
    few, many = topics_of(8, 16), topics_of(64, 16)
    numbers = [ConsumerId(consumer) for consumer in range(1, few.highest_consumer + 1)]
    assert [few.queue(each) for each in numbers] == [many.queue(each) for each in numbers]
    assert many.highest_consumer == 1008


def test_a_consumer_passes_over_the_others_in_its_queue():
    reader = reader_of(topics_of(3, 16), only=ConsumerId(12))
    read(reader, 1, gives(1, 0))
    read(reader, 1, gives(16, 1))
    assert read(reader, 1, gives(12, 2)) == [gives(12, 2)]
    assert reader._refusals.count == 0
    read(reader, 1, gives(17, 3))  # its queue is another one
    assert reader._refusals.count == 1


def test_assignments_of_another_layout_are_refused_and_not_overlooked(monkeypatch):
    """A controller that looks for them elsewhere would give to others what their consumers read."""
    topics = topics_of(64, 16)
    reader = reader_of(topics)
    assert read(reader, 40, gives(40, 0)) == []
    port = KafkaGroupTopicReader(topics)
    closed = []
    monkeypatch.setattr(topic_reader, "GroupReader", lambda *_: reader)
    monkeypatch.setattr(port, "_starts", dict)
    reader.take_up_to = lambda *_: []
    reader.close = lambda: closed.append(True)
    topics.check = lambda: None
    topics.admin = SimpleNamespace(offsets=lambda tps, _: dict.fromkeys(tps, 0))
    with pytest.raises(UnsafeError, match=r"consumer 40, which belongs into partition 3 by .*partition 16: set that"):
        port.read_to_end()
    assert closed == [True]
    read(reader, 40, Tombstone(member(40)))  # it was ended before the setting was changed
    assert port.read_to_end() == []


def test_only_a_transaction_to_very_many_partitions_is_given_more_time():
    assert extra_time_s(64) == 0
    assert extra_time_s(1001) == pytest.approx(18, rel=0.01)
    assert topics_of(64, 16).extra_time_s == 0
    assert topics_of(1001, 1).extra_time_s == extra_time_s(1001)
