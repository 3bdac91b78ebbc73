"""Partitions that cannot be read on: said every time, nothing behind it taken, no neighbour's record missed."""

import itertools

import pytest
from confluent_kafka import KafkaError

from kgs_core.ingest.fetch.fetch_client import trouble_of
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.ingest.round.stops import StopCause
from kgs_core.kafka.client_config import reading_client
from kgs_core.model import TopicPartition
from tests.core.ingest.fetch.test_session import FETCH, gathered

NUMBER = itertools.count()


@pytest.fixture
def session(kafka):
    session = NativeFetchSession(reading_client(kafka.settings()))
    yield session
    session.close()


@pytest.fixture
def topic(kafka):
    """A topic whose two partitions hold offsets 0 to 4."""
    name = f"trouble-{next(NUMBER)}"
    kafka.topic(name, 2)
    for partition, _ in itertools.product((0, 1), range(5)):
        kafka.produce(name, b"x", partition=partition)
    kafka.flush()
    return name


def test_offset_that_is_not_there_is_reported_every_time_that_it_is_asked_for(session, topic):
    good, bad = TopicPartition(topic, 0), TopicPartition(topic, 1)
    at = 0
    for _ in range(3):
        fetched = gathered(session, {good: at, bad: 40})
        assert fetched.troubles[bad][0] is StopCause.OUT_OF_RANGE
        assert bad not in fetched.ranges
        at = fetched.ranges[good].end if good in fetched.ranges else at
    while at < 5:
        at = gathered(session, {good: at}).ranges[good].end


def test_lost_partition_is_read_once_its_offset_is_there(session, topic, kafka):
    tp = TopicPartition(topic, 0)
    assert tp in gathered(session, {tp: 6}).troubles
    for _ in range(3):
        kafka.produce(topic, b"new")
    kafka.flush()
    assert gathered(session, {tp: 6}).ranges[tp].start == 6


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        ("TOPIC_AUTHORIZATION_FAILED", StopCause.DENIED),
        ("MSG_SIZE_TOO_LARGE", StopCause.DENIED),
        ("UNSUPPORTED_COMPRESSION_TYPE", StopCause.DENIED),
        ("INVALID_MSG", StopCause.CORRUPT),
    ],
)
def test_refusal_is_reported_every_time_and_ends_when_its_cause_ends(session, topic, kafka, error, trouble):
    tp = TopicPartition(topic, 0)
    for _ in range(2):
        kafka.fail(FETCH, *[getattr(KafkaError, error)] * 100)
        found, words = gathered(session, {tp: 0}).troubles[tp]
        kafka.stop_failing(FETCH)
        assert found is trouble
        assert words
    assert gathered(session, {tp: 0}).ranges[tp].start == 0


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        ("_AUTO_OFFSET_RESET", StopCause.OUT_OF_RANGE),
        ("_LOG_TRUNCATION", StopCause.OUT_OF_RANGE),
        ("_BAD_MSG", StopCause.CORRUPT),
        ("_BAD_COMPRESSION", StopCause.CORRUPT),
        ("_NOT_IMPLEMENTED", StopCause.CORRUPT),
        ("_TRANSPORT", None),
        ("_PARTITION_EOF", None),
        ("LEADER_NOT_AVAILABLE", None),
        ("UNKNOWN_TOPIC_OR_PART", None),
    ],
)
def test_what_an_error_means(error, trouble):
    assert trouble_of(KafkaError(getattr(KafkaError, error))) is trouble


def test_log_that_was_truncated_and_has_grown_again_is_lost_if_the_epoch_is_known(session, kafka):
    """Read to 10 in the first epoch, of which the log now has 5; the rest belongs to the next."""
    topic = f"truncated-{next(NUMBER)}"
    kafka.topic(topic)
    for records in (5, 15):
        for _ in range(records):
            kafka.produce(topic, b"x")
        kafka.flush()
        kafka.new_epoch(topic)
    tp = TopicPartition(topic, 0)
    (first, *_, last) = gathered(session, {tp: 0}).topics[topic].epochs.tolist()
    assert first < last
    session.epochs = {tp: first}
    trouble, words = gathered(session, {tp: 10}).troubles[tp]
    assert trouble is StopCause.OUT_OF_RANGE
    assert "truncat" in words
    assert gathered(session, {tp: 5}).ranges[tp].start == 5  # where the epoch ends, nothing is missing
    session.epochs = {tp: last}
    assert gathered(session, {tp: 10}).ranges[tp].start == 10
