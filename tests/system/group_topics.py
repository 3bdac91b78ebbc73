"""What the tests of the group's topics share: a group, messages, and records that nobody should write."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import yaml
from confluent_kafka import Producer

from kgs_core.config import Settings, parse_settings
from kgs_core.group.protocol import (
    DesiredState,
    DesiredVersion,
    Heartbeat,
    Incarnation,
    Member,
    MemberAssignment,
    Message,
    Phase,
    Received,
    Report,
    RunState,
    Target,
    Tombstone,
)
from kgs_core.group.protocol.codec import encode
from kgs_core.group.topics.assignments import KafkaAssignmentReader
from kgs_core.group.topics.controller_writer import KafkaControllerWriter
from kgs_core.group.topics.durable_writer import DurableWriter
from kgs_core.group.topics.topic_reader import KafkaGroupTopicReader
from kgs_core.group.topics.topics import GroupTopic, GroupTopics, create_topics
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client
from kgs_core.model import ConsumerId, TopicPartition
from tests.processes import a_process

A, B, C = (TopicPartition("flights", number) for number in range(3))


def settings_of(bootstrap: str, group: str, client: dict[str, Any] | None = None, **membership: Any) -> Settings:
    tree = {
        "group": group.rstrip("."),
        "kafka": {"bootstrap_servers": bootstrap, "client": client or {}},
        "lake": {"root": "/nowhere"},
        "topics": [{"topic": "flights"}],
        "membership": membership,
    }
    return parse_settings(yaml.safe_dump(tree).encode(), "kgs.yaml", {})


def member(consumer: int, incarnation: str = "") -> Member:
    return Member(ConsumerId(consumer), Incarnation(incarnation or f"{consumer:08d}-0000-4000-8000-000000000000"))


def gives(consumer: int, *owned: TopicPartition, incarnation: str = "") -> MemberAssignment:
    return MemberAssignment(member(consumer, incarnation), frozenset(owned))


def target(reason: str = "first", *known: Member) -> Target:
    everything = {A: ConsumerId(1), B: ConsumerId(1), C: ConsumerId(2)}
    return Target(
        "mwf", everything, (ConsumerId(3),), {A: 1.5, B: 2.0, C: 3.0}, 1e6, 0.25, reason, known, (), 1_700_000_000_000
    )


def heartbeat(consumer: int, sequence: int) -> Heartbeat:
    return Heartbeat(member(consumer), sequence, Phase.READING, 1234.5, 0.25)


def report(consumer: int, sequence: int, *owned: TopicPartition) -> Report:
    return Report(member(consumer), sequence, Phase.READING, 12.5, None, a_process(17), 3, frozenset(owned))


DESIRED = DesiredState(RunState.PAUSED, "ada", 1_700_000_000_000)
WANTED = DesiredVersion("0.2.0", "abc", "ada", 1_700_000_000_001)


class Group:
    """One group on a broker, with everything that is opened closed at the end."""

    def __init__(self, bootstrap: str, group: str, client: dict[str, Any] | None = None, **membership: Any) -> None:
        self.settings = settings_of(bootstrap, group, client, **membership)
        self.admin = KafkaAdmin(admin_client(self.settings))
        create_topics(self.settings, self.admin)
        self.topics = GroupTopics(self.settings, self.admin)
        self.opened: list[Any] = []
        self._ids = itertools.count()

    def again(self) -> GroupTopics:
        """The topics as another process opens them."""
        return GroupTopics(self.settings, self.admin)

    def reader(self, timeout_s: float = 30.0) -> KafkaGroupTopicReader:
        self.opened.append(KafkaGroupTopicReader(self.again(), timeout_s))
        return self.opened[-1]

    def writer(self, *, fenced: bool = True) -> KafkaControllerWriter:
        self.opened.append(KafkaControllerWriter(self.again()))
        if fenced:
            self.opened[-1].fence()
        return self.opened[-1]

    def assignment_reader(self, consumer: int) -> KafkaAssignmentReader:
        self.opened.append(KafkaAssignmentReader(self.again(), ConsumerId(consumer)))
        return self.opened[-1]

    def report_writer(self) -> DurableWriter:
        self.opened.append(DurableWriter(self.again(), GroupTopic.REPORTS))
        return self.opened[-1]

    def name(self, which: GroupTopic) -> str:
        return self.topics.name(which)

    def produce(self, which: GroupTopic, partition: int, *records: tuple[bytes | None, bytes | None]) -> None:
        """Records past all rules."""
        refused: list[object] = []
        producer = Producer(admin_client(self.settings))
        for key, value in records:
            producer.produce(
                self.name(which), value, key, partition, on_delivery=lambda error, _: error and refused.append(error)
            )
        assert producer.flush(20) == 0
        assert refused == []

    @contextmanager
    def transaction(self, *messages: MemberAssignment, timeout_ms: int = 60_000) -> Iterator[Producer]:
        """Somebody else's transaction, open and with everything delivered."""
        config = {"transactional.id": f"{self.settings.group}-else-{next(self._ids)}", "log_level": 0}
        producer = Producer({**admin_client(self.settings), **config, "transaction.timeout.ms": timeout_ms})
        producer.init_transactions(20)
        producer.begin_transaction()
        for message in messages:
            key, value = encode(message)
            producer.produce(self.name(GroupTopic.ASSIGNMENTS), value, key, message.member.consumer)
        assert producer.flush(20) == 0
        yield producer

    def close(self) -> None:
        for each in self.opened:
            each.close()


@contextmanager
def group_on(bootstrap: str, name: str, client: dict[str, Any] | None = None, **membership: Any) -> Iterator[Group]:
    group = Group(bootstrap, name, client, **membership)
    try:
        yield group
    finally:
        group.close()


def messages_of(received: Sequence[Received[Message]]) -> list[Message]:
    """The messages alone."""
    return [each.message for each in received]


def assignments_in(received: Sequence[Received[Message]]) -> list[MemberAssignment | Tombstone]:
    return [each.message for each in received if isinstance(each.message, MemberAssignment | Tombstone)]
