"""Times of records at positions that move faster than all can be asked; the client is a loop."""

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME

from kgs_core.config import parse_settings
from kgs_core.kafka import record_times
from kgs_core.kafka.record_times import RecordTimes
from kgs_core.model import TopicPartition
from tests.configuration import text_of

EVERY = [TopicPartition("t", p) for p in range(5)]


class Client:
    """A log whose record at offset n has the timestamp n, for ever."""

    def __init__(self):
        self.left = []

    def get(self):
        return self

    take = get

    def assign(self, places):
        self.left = list(places)

    def poll(self, _):
        return Message(self.left.pop())

    def incremental_unassign(self, _):
        pass

    unassign = close = lambda self: None


class Message:
    def __init__(self, place):
        self.place = place
        self.error = lambda: None
        self.topic, self.partition = (lambda: place.topic), (lambda: place.partition)
        self.timestamp = lambda: (TIMESTAMP_CREATE_TIME, place.offset)


@pytest.fixture
def times(monkeypatch):
    monkeypatch.setattr(record_times, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(record_times, "RotatingClient", lambda *_: Client())
    return RecordTimes(parse_settings(text_of().encode(), "test", {}))


def test_those_whose_turn_has_not_come_have_the_time_of_an_earlier_position(times):
    assert len(times.at(dict.fromkeys(EVERY, 10), 1.0)) == 2
    assert len(times.at(dict.fromkeys(EVERY, 11), 1.0)) == 4
    for position in range(12, 20):
        found = times.at(dict.fromkeys(EVERY, position), 1.0)
        assert found.keys() == {*EVERY}
        assert all(position - 2 <= stamp <= position for stamp in found.values())
    assert times.at({EVERY[0]: 3}, 1.0) == {EVERY[0]: 3}, "a topic that was made again"
    assert times.at({}, 1.0) == {}
    assert len(times.at(dict.fromkeys(EVERY, 20), 1.0)) == 2, "who has caught up meanwhile is asked anew"
