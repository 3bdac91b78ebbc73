"""What has come to a client of a partition, up to an offset or to the end of the log."""

from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer

from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka.client_config import reading_client
from kgs_core.kafka.records import arrived, read_until
from kgs_core.model import OffsetRange, TopicPartition


@pytest.fixture
def log(kafka, request):
    """Ten records, "0" to "9"."""
    topic = request.node.name
    kafka.topic(topic)
    for number in range(10):
        kafka.produce(topic, b"%d" % number)
    kafka.flush()
    return TopicPartition(topic, 0)


@pytest.fixture
def reader(kafka):
    consumer = Consumer(reading_client(kafka.settings()))
    yield consumer
    consumer.close()


def values(records):
    return b"".join(record.value() for record in records).decode()


@pytest.mark.parametrize(("span", "found"), [((0, 10), "0123456789"), ((3, 5), "34"), ((8, 99), "89"), ((4, 4), "")])
def test_reads_a_span_as_far_as_the_log_goes(log, reader, span, found):
    assert values(read_until(reader, log, OffsetRange(*span), 20, where="here")) == found


def test_one_at_a_time_nothing_behind_the_span_is_lost(log, reader):
    (record,) = read_until(reader, log, OffsetRange(3, 4), 20, where="here", at_once=1)
    rest = []
    while len(rest) < 6:
        rest += [one for one in arrived(reader, 100, 5) if one.error() is None]
    assert (values([record]), values(rest)) == ("3", "456789")


def test_what_kafka_refuses_is_raised(log, reader):
    """The log does not have that offset; the client is told to raise that, not to begin elsewhere."""
    with pytest.raises(PermanentError, match=f"Kafka here: read topic '{log.topic}'"):
        list(read_until(reader, log, OffsetRange(1000, 1001), 20, where="here"))


@contextmanager
def without_broker():
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:9", "group.id": "none", "log_level": 0})
    yield consumer
    consumer.close()


def test_silence_is_borne_for_so_long():
    with without_broker() as consumer, pytest.raises(TransientError, match=r"Kafka here: read topic 't': nothing came"):
        list(read_until(consumer, TopicPartition("t", 0), OffsetRange(0, 1), 0.3, where="here"))
