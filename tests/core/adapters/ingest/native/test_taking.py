"""What is taken of events that have come, without a broker."""

import numpy as np
import pytest
from confluent_kafka import KafkaError

from kgs_core.accel.layout import AT, NOBODY, SLOT
from kgs_core.adapters.ingest.native.session import NativeFetchSession
from kgs_core.consumer.round.stops import StopCause
from kgs_core.model import OffsetRange, TopicPartition


@pytest.fixture
def session():
    session = NativeFetchSession({"bootstrap.servers": "127.0.0.1:9", "group.id": "none", "log_level": 0})
    yield session
    session.close()


@pytest.fixture
def take(session, monkeypatch):
    """Has the session take events (partition, offset; None: an error), and gives what was taken of them."""
    taken = []

    def fill(end, _columns):
        taken.extend(tuple(note[[SLOT, AT]]) for note in session._notes[:end] if note[SLOT] != NOBODY)
        session._count = session._waiting_bytes = 0

    monkeypatch.setattr(session, "_fill", fill)
    monkeypatch.setattr("kgs_core.adapters.ingest.native.session.TopicColumns", lambda _: None)
    monkeypatch.setattr(
        "kgs_core.adapters.ingest.native.session.message_error", lambda _, code: KafkaError(code, "failed its check")
    )

    def took(tps, events):
        session._tps, session._names, session._topic_of = tps, ["t"], np.zeros(len(tps), np.int64)
        session._notes[: len(events)] = [
            (p, KafkaError._BAD_MSG if o is None else 0, o or 0, 1, 0, 0, 0) for p, o in events
        ]
        session._next, session._count, session._waiting_bytes = dict.fromkeys(tps, 0), len(events), len(events)
        return session._batch(dict.fromkeys(tps, 0), 1000, is_due=True), taken

    return took


def test_nothing_behind_a_batch_that_fails_its_check_is_taken(take):
    """Events as librdkafka gives them: the error between what came before it and what lies behind."""
    tps = [TopicPartition("t", 0), TopicPartition("t", 1)]
    events = [(0, 0), (0, 1), (1, 0), (0, None), (0, 7), (1, 1), (0, 8), (1, 2)]
    fetched, taken = take(tps, events)
    assert fetched.ranges == {tps[0]: OffsetRange(0, 2), tps[1]: OffsetRange(0, 3)}
    assert fetched.troubles == {tps[0]: (StopCause.CORRUPT, "failed its check")}
    assert taken == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]


def test_an_offset_that_is_given_twice_is_taken_once(take):
    tps = [TopicPartition("t", 0), TopicPartition("t", 1)]
    fetched, taken = take(tps, [(0, 0), (0, 1), (1, 0), (0, 0), (0, 1), (1, 0), (0, 2)])
    assert fetched.ranges == {tps[0]: OffsetRange(0, 3), tps[1]: OffsetRange(0, 1)}
    assert taken == [(0, 0), (0, 1), (1, 0), (0, 2)]
