from collections.abc import Callable

import pytest

from kgs_core.config import Settings
from kgs_core.errors import PermanentError, ProtocolError, UnsafeError
from kgs_core.group.protocol import (
    DesiredState,
    DesiredVersion,
    Heartbeat,
    Incarnation,
    Member,
    MemberAssignment,
    Message,
    Phase,
    Report,
    RunState,
    Target,
    Tombstone,
)
from kgs_core.group.topics import topics as group_topics
from kgs_core.group.topics.reader import Refusals, belongs
from kgs_core.group.topics.topics import GroupTopic, GroupTopics
from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.model import ConsumerId, TopicPartition
from tests.configuration import settings_of
from tests.processes import a_process

TWO = Member(ConsumerId(2), Incarnation("two"))
PLACES = [*((GroupTopic.ASSIGNMENTS, number) for number in range(4)), (GroupTopic.OPERATOR, 0), (GroupTopic.REPORTS, 0)]
OWN_QUEUE: Callable[[ConsumerId], int] = int
MESSAGES: list[tuple[Message, tuple[GroupTopic, int]]] = [
    (Target("mwf", {}, (), {}, 1.0, 0.0, "", (), (), 0), (GroupTopic.ASSIGNMENTS, 0)),
    (MemberAssignment(TWO), (GroupTopic.ASSIGNMENTS, 2)),
    (Tombstone(TWO), (GroupTopic.ASSIGNMENTS, 2)),
    (Heartbeat(TWO, 1, Phase.READING, 0.0, None), (GroupTopic.REPORTS, 0)),
    (Report(TWO, 1, Phase.READING, 0.0, None, a_process(), None, frozenset()), (GroupTopic.REPORTS, 0)),
    (DesiredState(RunState.RUNNING, "ada", 0), (GroupTopic.OPERATOR, 0)),
    (DesiredVersion("1", "a", "ada", 0), (GroupTopic.OPERATOR, 0)),
]


def settings() -> Settings:
    return settings_of(kafka={"bootstrap_servers": "localhost:9092"})


@pytest.mark.parametrize(("message", "home"), MESSAGES, ids=lambda value: type(value).__name__)
def test_every_message_belongs_into_one_place_only(message: Message, home: tuple[GroupTopic, int]) -> None:
    assert [place for place in PLACES if belongs(message, *place, OWN_QUEUE)] == [home]


def test_whole_states_are_kept_and_reports_are_not() -> None:
    config = {which: group_topics._config(which) for which in GroupTopic}
    assert [config[which]["cleanup.policy"] for which in GroupTopic] == ["compact", "compact", "delete"]
    assert config[GroupTopic.REPORTS]["retention.ms"] == str(48 * 3_600_000)
    assert "retention.ms" not in config[GroupTopic.ASSIGNMENTS]
    kept_ms = int(config[GroupTopic.ASSIGNMENTS]["delete.retention.ms"])
    assert kept_ms >= int(config[GroupTopic.REPORTS]["retention.ms"]) + 24 * 3_600_000
    assert all(int(config[which]["segment.ms"]) < 3_600_000 for which in GroupTopic)


def test_a_reason_is_logged_once_and_every_record_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    tp = TopicPartition("kgs.g.consumer.metadata", 3)
    for offset, reason in enumerate(["no JSON", "no JSON", "version 9", "no JSON"]):
        refusals.note(tp, offset, ProtocolError(reason))
    assert refusals.count == 4
    assert [record.getMessage() for record in caplog.records] == [
        "left out kgs.g.consumer.metadata:3 offset 0: no JSON",
        "left out kgs.g.consumer.metadata:3 offset 2: version 9",
    ]


def test_whoever_floods_the_topic_with_new_reasons_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for offset in range(1000):
        refusals.note(TopicPartition("t", 0), offset, ProtocolError(f"reason {offset}"))
    assert refusals.count == 1000
    assert len(caplog.records) == 100


class Brokers:
    """`KafkaAdmin` whose clients each ask another broker; some of these know a topic by another id, or not at all."""

    partitions = 64

    def __init__(self, *known):
        self._known, self._asked = known, 0

    def choose_anew(self):
        self._asked += 1

    def describe(self, topics):
        topic_id = self._known[min(self._asked, len(self._known) - 1)]
        return {
            topic: TopicDescription(topic_id, self.partitions if "consumer" in topic else 1)
            for topic in topics
            if topic_id
        }


@pytest.mark.parametrize("others", [(None,), ("older",), (None, "older", None)])
def test_a_topic_that_one_broker_does_not_know_is_asked_of_others(monkeypatch, others):
    monkeypatch.setattr(group_topics, "CONFIRM_AFTER_S", 0.0)
    opened = GroupTopics(settings(), Brokers(None, None, None, "new"))
    opened.admin = Brokers(*others, "new")
    opened.check()


def test_a_topic_that_no_broker_knows_cannot_be_opened(monkeypatch):
    monkeypatch.setattr(group_topics, "CONFIRM_AFTER_S", 0.0)
    with pytest.raises(PermanentError, match=r"no topic kgs\.g\.consumer\.metadata, .*start the controller first"):
        GroupTopics(settings(), Brokers(None))


def test_a_topic_that_is_given_more_partitions_ends_who_has_it_open(monkeypatch):
    """They move queues: who was told where to look by the former number would look there for ever."""
    opened = GroupTopics(settings(), Brokers("new"))
    opened.check()
    monkeypatch.setattr(Brokers, "partitions", 65)
    with pytest.raises(UnsafeError, match="had 64 partitions, has 65: start this process again"):
        opened.check()


@pytest.mark.parametrize("now", [None, "another"])
def test_a_topic_that_no_broker_knows_is_gone(monkeypatch, now):
    monkeypatch.setattr(group_topics, "CONFIRM_AFTER_S", 0.0)
    opened = GroupTopics(settings(), Brokers("new"))
    opened.admin = Brokers(now)
    with pytest.raises(UnsafeError, match=r"opened as topic id new, Kafka now has"):
        opened.check()
