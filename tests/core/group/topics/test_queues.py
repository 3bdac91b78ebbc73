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


def topics_of(partitions):
    topics = object.__new__(GroupTopics)
    topics.settings = SimpleNamespace(group="g")
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


def test_a_consumer_has_the_partition_of_its_number_as_in_version_0_1():
    topics = topics_of(64)
    assert [topics.queue(ConsumerId(consumer)) for consumer in range(1, 64)] == list(range(1, 64))


@pytest.mark.parametrize("partitions", [2, 3, 64])
def test_where_there_are_more_consumers_the_partitions_are_shared_evenly(partitions):
    topics = topics_of(partitions)
    queues = [topics.queue(ConsumerId(consumer)) for consumer in range(1, 16 * (partitions - 1) + 1)]
    assert {queue: queues.count(queue) for queue in queues} == dict.fromkeys(range(1, partitions), 16)


def test_a_consumer_passes_over_the_others_in_its_queue():
    reader = reader_of(topics_of(3), only=ConsumerId(11))
    read(reader, 1, gives(1, 0))
    read(reader, 1, gives(13, 1))
    assert read(reader, 1, gives(11, 2)) == [gives(11, 2)]
    assert reader._refusals.count == 0
    read(reader, 1, gives(12, 3))  # its queue is another one
    assert reader._refusals.count == 1


def test_assignments_of_another_layout_are_refused_and_not_overlooked(monkeypatch):
    """A controller that looks for them elsewhere would give to others what their consumers read."""
    topics = topics_of(64)
    reader = reader_of(topics)
    assert read(reader, 3, gives(40, 0)) == []
    port = KafkaGroupTopicReader(topics)
    closed = []
    monkeypatch.setattr(topic_reader, "GroupReader", lambda *_: reader)
    monkeypatch.setattr(port, "_starts", dict)
    reader.take_up_to = lambda *_: []
    reader.close = lambda: closed.append(True)
    topics.check = lambda: None
    topics.admin = SimpleNamespace(offsets=lambda tps, _: dict.fromkeys(tps, 0))
    with pytest.raises(UnsafeError, match="consumer 40, which belongs into partition 40: the topic was given more"):
        port.read_to_end()
    assert closed == [True]
    read(reader, 3, Tombstone(member(40)))  # it was ended before the controller was started again
    assert port.read_to_end() == []


def test_only_a_transaction_to_very_many_partitions_is_given_more_time():
    assert extra_time_s(64) == 0
    assert extra_time_s(1001) == pytest.approx(18, rel=0.01)
    assert topics_of(64).extra_time_s == 0
    assert topics_of(1001).extra_time_s == extra_time_s(1001)
