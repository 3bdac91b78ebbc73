"""The writer of reports and desired states, on librdkafka's own cluster: what it says is there can be read."""

import time
from types import SimpleNamespace

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from kgs_core.errors import ProtocolError, TransientError
from kgs_core.group.protocol import DesiredState, Incarnation, Member, RunState, Starting
from kgs_core.group.protocol.codec import decode
from kgs_core.group.topics import durable_writer
from kgs_core.group.topics.durable_writer import DurableWriter
from kgs_core.group.topics.topics import GroupTopic
from kgs_core.model import ConsumerId, TopicPartition
from tests.processes import a_process
from tests.waiting import wait_until

DESIRED = DesiredState(RunState.PAUSED, "sam", 1)
WAITS = Starting(Member(ConsumerId(3), Incarnation("x")), a_process(run_id="run-1"), "no space left")


@pytest.fixture
def writer_of(kafka):
    """Writers of the one partition of a topic each."""
    opened = []

    def build(name):
        kafka.topic(name)
        topics = SimpleNamespace(settings=kafka.settings(), partitions=lambda _: (TopicPartition(name, 0),))
        opened.append(DurableWriter(topics, GroupTopic.REPORTS))
        return opened[-1]

    yield build
    for writer in opened:
        writer.close()


def read(kafka, name, count):
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([ClientPartition(name, 0, 0)])
        return [decode(found.key(), found.value()) for found in consumer.consume(count, 20)]
    finally:
        consumer.close()


def test_what_was_appended_is_there_in_order_and_its_place_is_returned(writer_of, kafka):
    writer = writer_of("said")
    first, second = writer.append(DESIRED, 20), writer.append(WAITS, 20)
    assert (first.message, first.offset) == (DESIRED, 0)
    assert (second.message, second.offset) == (WAITS, 1)
    assert first.timestamp_ms == 1234, "the clock of this broker"
    writer.append(WAITS, 20)
    assert read(kafka, "said", 3) == [DESIRED, WAITS, WAITS]


def test_a_message_out_of_its_limits_is_refused_and_the_next_one_taken(writer_of, kafka):
    writer = writer_of("limits")
    with pytest.raises(ProtocolError, match="Starting"):
        writer.append(Starting(WAITS.member, a_process(-1), ""), 20)
    writer.append(WAITS, 20)
    assert read(kafka, "limits", 1) == [WAITS]


def test_no_answer_in_time_is_a_failure_that_says_so(writer_of):
    writer = writer_of("late")
    with pytest.raises(TransientError, match="no answer in 0 s"):
        writer.append(WAITS, 0)


def test_what_got_no_answer_is_not_sent_later_and_keeps_no_client_alive(writer_of, kafka):
    """Each failure of an outage left a client whose record had no answer: it sent that when Kafka came back."""
    writer = writer_of("outage")
    writer.append(WAITS, 20)
    kafka.kill(1)
    before = psutil.Process().num_threads()
    for _ in range(4):
        with pytest.raises(TransientError, match="no answer"):
            writer.append(DESIRED, 0.5)
    wait_until(lambda: psutil.Process().num_threads() <= before, 20, "the clients have ended")
    kafka.revive(1)
    writer.append(WAITS, 20)
    assert read(kafka, "outage", 2) == [WAITS, WAITS]


class BrokenProducer:
    """A client that never answers; takes some records and refuses the next."""

    def __init__(self, takes, error=None):
        self.takes, self.error = takes, error
        self.is_purged = False

    def produce(self, *_, **__):
        self.takes -= 1
        if self.takes < 0:
            raise KafkaException(KafkaError(self.error))

    def poll(self, timeout_s):
        time.sleep(min(timeout_s, 0.01))

    def purge(self):
        self.is_purged = True


def test_a_client_that_takes_nothing_more_is_thrown_away(writer_of, kafka):
    writer = writer_of("broken")
    writer._producer = BrokenProducer(0, KafkaError._FATAL)
    with pytest.raises(TransientError, match="write to broken:0"):
        writer.append(WAITS, 20)
    writer.append(WAITS, 20)
    assert read(kafka, "broken", 1) == [WAITS]


def test_a_repetition_that_cannot_be_made_does_not_end_the_wait(writer_of, monkeypatch):
    """A token that is not to be had for a moment, say: the first client may have an answer yet."""
    writer, first = writer_of("beside"), BrokenProducer(1)
    made = iter([first])

    def make(*_):
        if (producer := next(made, None)) is None:
            raise TransientError("there is no token now")
        return producer

    monkeypatch.setattr(durable_writer, "make_producer", make)
    monkeypatch.setattr(durable_writer, "REPEAT_S", 0.02)
    with pytest.raises(TransientError, match=r"no answer in 0\.2 s"):
        writer.append(WAITS, 0.2)
    assert first.is_purged
