"""A consumer's queue where Kafka refuses it, with a client that says so once, as librdkafka does."""

from types import SimpleNamespace

import pytest

from kgs_core.errors import PermanentError
from kgs_core.group.topics import assignments
from kgs_core.group.topics.assignments import KafkaAssignmentReader
from kgs_core.model import ConsumerId, TopicPartition

QUEUE = TopicPartition("kgs.g.consumer.metadata", 1)


class OnceRefused:
    """A reader whose right was taken away: one error, then silence, until it is asked anew and has the right."""

    def __init__(self, *_, only):
        self.positions = {QUEUE: 0}
        self.out_of_range = set()
        self.problem = ""
        self.is_served = True
        self.has_right = True
        self.errors = []

    def take(self, _timeout_s):
        if self.errors:
            raise self.errors.pop()
        return []

    def ask_again(self):
        self.is_served = self.has_right


@pytest.fixture
def queue(monkeypatch):
    monkeypatch.setattr(assignments, "GroupReader", OnceRefused)
    monkeypatch.setattr(assignments, "ASK_AGAIN_S", 0.0)
    topics = SimpleNamespace(
        partitions=lambda _: (TopicPartition(QUEUE.topic, 0), QUEUE),
        admin=SimpleNamespace(offsets=lambda tps, _: dict.fromkeys(tps, 0)),
        check=lambda: None,
        queue=int,
        check_now_and_then=lambda: None,
    )
    return KafkaAssignmentReader(topics, ConsumerId(1))


def test_queue_that_was_refused_stays_so_until_kafka_gives_out_something_again(queue):
    """Silence after a refusal used to count as a queue without assignments."""
    assert queue.newest(0.0) == []
    reader = queue._reader
    reader.has_right = False
    reader.errors = [PermanentError("not authorized")]
    for _ in range(3):
        with pytest.raises(PermanentError, match="not authorized"):
            queue.newest(0.0)
    reader.has_right = True
    assert queue.newest(0.0) == []
    assert queue.newest(0.0) == []
