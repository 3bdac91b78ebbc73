"""The writer of reports and desired states, on librdkafka's own cluster: what it says is there can be read."""

from functools import partial
from types import SimpleNamespace

import psutil
import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition

from kgs_core.adapters.group import durable_writer
from kgs_core.adapters.group.durable_writer import DurableWriter
from kgs_core.adapters.group.topics import GroupTopic
from kgs_core.errors import ProtocolError, TransientError
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.protocol import DesiredState, Incarnation, Member, RunState, Starting
from kgs_core.protocol.codec import decode
from kgs_core.protocol.record_parts import PartsReader, records_of
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
    return [decode(*record) for record in records_in(kafka, name, count)]


def records_in(kafka, name, count):
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([ClientPartition(name, 0, 0)])
        return [(found.key(), found.value()) for found in consumer.consume(count, 20)]
    finally:
        consumer.close()


def test_what_was_appended_is_there_in_order_and_its_place_is_returned(writer_of, kafka):
    writer = writer_of("said")
    first, second = writer.append(DESIRED, 20), writer.append(WAITS, 20)
    assert (first.message, first.offset) == (DESIRED, 0)
    assert (second.message, second.offset) == (WAITS, 1)
    assert first.timestamp_ms == 1234, "the clock of this broker"
    writer.send(WAITS, 20)
    assert read(kafka, "said", 3) == [DESIRED, WAITS, WAITS]


def test_a_message_out_of_its_limits_is_refused_and_the_next_one_taken(writer_of, kafka):
    writer = writer_of("limits")
    with pytest.raises(ProtocolError, match="Starting"):
        writer.send(Starting(WAITS.member, a_process(-1), ""), 20)
    writer.send(WAITS, 20)
    assert read(kafka, "limits", 1) == [WAITS]


def test_no_answer_in_time_is_a_failure_that_says_so(writer_of):
    writer = writer_of("late")
    with pytest.raises(TransientError, match="no answer in 0 s"):
        writer.send(WAITS, 0)


def test_what_got_no_answer_is_not_sent_later_and_keeps_no_client_alive(writer_of, kafka):
    """Each failure of an outage left a client whose record had no answer: it sent that when Kafka came back."""
    writer = writer_of("outage")
    writer.send(WAITS, 20)
    kafka.kill(1)
    before = psutil.Process().num_threads()
    for _ in range(4):
        with pytest.raises(TransientError, match="no answer"):
            writer.append(DESIRED, 0.5)
    wait_until(lambda: psutil.Process().num_threads() <= before, 20, "the clients have ended")
    kafka.revive(1)
    writer.send(WAITS, 20)
    assert read(kafka, "outage", 2) == [WAITS, WAITS]


def test_a_message_in_parts_is_there_with_its_last_part_and_half_of_one_is_passed_over(writer_of, kafka, monkeypatch):
    """No transaction holds a consumer's parts together: what one has left that was killed stands before the next."""
    cut = partial(records_of, most_bytes=50, part_characters=40)
    parts = cut(WAITS)
    assert len(parts) > 3
    writer = writer_of("parts")
    for killed_after in range(1, len(parts)):
        monkeypatch.setattr(durable_writer, "records_of", lambda message, n=killed_after: cut(message)[:n])
        writer.send(WAITS, 20)
    monkeypatch.setattr(durable_writer, "records_of", cut)
    halves = sum(range(1, len(parts)))
    appended = writer.append(WAITS, 20)
    assert appended.offset == halves + len(parts) - 1
    dropped = []
    reader = PartsReader(dropped.append)
    found = [reader.take(*record) for record in records_in(kafka, "parts", halves + len(parts))]
    assert found == [None] * (len(found) - 1) + [WAITS]
    assert len(dropped) == len(parts) - 1
