"""A consumer's queue: assignments that were lost or are refused, and none at all; the reader from memory."""

import pytest

from kgs_core.errors import PermanentError, UnsafeError
from kgs_core.group.protocol import Incarnation, Member, MemberAssignment, Received, Tombstone
from kgs_core.group.topics import assignments
from kgs_core.group.topics.assignments import KafkaAssignmentReader
from kgs_core.group.topics.reader import ReadMessage
from kgs_core.group.topics.topics import GroupTopic
from kgs_core.model import ConsumerId, TopicPartition

QUEUES = [TopicPartition("kgs.g.consumer.metadata", n) for n in range(3)]
ME = Member(ConsumerId(2), Incarnation("me"))


class Topics:
    """The group's topics, which may be made again."""

    def __init__(self):
        self.admin = self
        self.made_again = False

    def partitions(self, kind):
        assert kind is GroupTopic.ASSIGNMENTS
        return QUEUES

    def queue(self, consumer):
        return consumer

    def name(self, _):
        return QUEUES[0].topic

    def offsets(self, tps, which):
        assert which == "latest"
        return dict.fromkeys(tps, 5)

    def check(self):
        if self.made_again:
            raise UnsafeError("made again")

    def check_now_and_then(self):
        pass


class Reader:
    """Gives what it is told to. A right that was taken away is one error, then silence, until it is asked anew."""

    def __init__(self, _topics, starts, _refusals, only):
        assert only == ME.consumer
        self.positions = starts
        self.problem = ""
        self.is_served = self.has_right = True
        self.out_of_range = set()
        self.read, self.errors = [], []

    def take(self, _):
        if self.errors:
            raise self.errors.pop()
        read, self.read = self.read, []
        return read

    def ask(self):
        self.is_served = self.has_right


@pytest.fixture
def queue(monkeypatch):
    monkeypatch.setattr(assignments, "GroupReader", Reader)
    monkeypatch.setattr(assignments, "ASK_AGAIN_S", 0.0)
    return KafkaAssignmentReader(Topics(), ConsumerId(2))


def read(*messages):
    return [ReadMessage(GroupTopic.ASSIGNMENTS, Received(message, 5 + n, 0)) for n, message in enumerate(messages)]


def test_it_begins_at_the_end_of_its_own_queue_and_gives_assignments_alone(queue):
    assert queue._reader.positions == {QUEUES[2]: 5}
    queue._reader.read = read(Tombstone(ME), MemberAssignment(ME))
    assert [each.message for each in queue.newest(0.0)] == [MemberAssignment(ME)]
    assert queue.newest(0.0) == []


def test_queue_that_was_refused_stays_so_until_kafka_gives_out_something_again(queue):
    """Silence after a refusal used to count as a queue without assignments, as librdkafka says it once."""
    queue._reader.has_right = False
    queue._reader.errors = [PermanentError("not authorized")]
    for _ in range(3):
        with pytest.raises(PermanentError, match="not authorized"):
            queue.newest(0.0)
    queue._reader.has_right = True
    for _ in range(2):
        assert queue.newest(0.0) == []


def test_assignments_that_were_deleted_unread_end_the_consumer(queue):
    """What they gave or took is not known, and nobody says it again: only another incarnation gets new ones."""
    queue._reader.out_of_range = {QUEUES[2]}
    with pytest.raises(
        UnsafeError, match=r"offset 5 is not in the log: assignments were deleted .* start this consumer"
    ):
        queue.newest(0.0)


def test_nothing_is_taken_from_a_topic_that_was_made_again_and_nothing_is_forgotten(queue):
    queue._reader.read = read(MemberAssignment(ME))
    queue._topics.made_again = True
    with pytest.raises(UnsafeError, match="made again"):
        queue.newest(0.0)
    queue._topics.made_again = False
    assert [each.message for each in queue.newest(0.0)] == [MemberAssignment(ME)]
