"""When a controller listens: where nothing comes, it makes sure that there is nothing to be read."""

from types import SimpleNamespace

import pytest

from kgs_core.errors import TransientError
from kgs_core.group.topics import topic_reader
from kgs_core.group.topics.reader import ReadMessage
from kgs_core.group.topics.topic_reader import SILENCE_S, KafkaGroupTopicReader
from kgs_core.group.topics.topics import GroupTopic
from kgs_core.model import TopicPartition

REPORTS = TopicPartition("reports", 0)


@pytest.fixture
def listening(monkeypatch):
    """A reader at offset 5, the end of the reports, and what their leader answers, if it does."""
    clock, leader, asked = SimpleNamespace(now=100.0), {REPORTS: 5}, []

    def take(_):
        if not came:
            return []
        message = came.pop()
        positions[REPORTS] += message in late
        return [message]

    def offsets(*_, **__):
        came.extend(late)
        asked.append(clock.now)
        if not leader:
            raise TransientError("no answer")
        return leader

    topics = SimpleNamespace(
        partitions=lambda _: (REPORTS,), admin=SimpleNamespace(offsets=offsets), check_now_and_then=lambda: None
    )
    monkeypatch.setattr(topic_reader, "time", SimpleNamespace(monotonic=lambda: clock.now))
    came, late, positions = [], [], {REPORTS: 5}
    reader = KafkaGroupTopicReader(topics)
    reader._heard_at = clock.now
    reader._reader = SimpleNamespace(take=take, rewind=lambda: None, problem="", positions=positions)
    return SimpleNamespace(poll=lambda: reader.poll(0.0), clock=clock, leader=leader, asked=asked, came=came, late=late)


def test_who_hears_reports_asks_nobody(listening):
    for _ in range(10):
        listening.clock.now += SILENCE_S - 0.1
        listening.came.append(ReadMessage(GroupTopic.REPORTS, SimpleNamespace(received=None)))
        assert len(listening.poll()) == 1
    assert listening.asked == []


def test_silence_counts_while_the_leader_of_the_reports_has_no_more(listening):
    for _ in range(10):
        listening.clock.now += SILENCE_S / 2
        assert listening.poll() == []
    assert len(listening.asked) == 5


@pytest.mark.parametrize("answer", [{}, {REPORTS: 6}])
def test_reports_that_cannot_be_read_are_no_silence(listening, answer):
    listening.leader.clear()
    listening.leader.update(answer)
    assert listening.poll() == []
    listening.clock.now += SILENCE_S
    for _ in range(3):
        with pytest.raises(TransientError):
            listening.poll()
    listening.leader[REPORTS] = 5
    assert listening.poll() == []


def test_a_report_that_comes_while_its_leader_is_asked_is_taken_and_nothing_said(listening):
    listening.leader[REPORTS] = 6
    listening.late.append(ReadMessage(GroupTopic.REPORTS, SimpleNamespace(received=None)))
    listening.clock.now += SILENCE_S
    assert len(listening.poll()) == 1
