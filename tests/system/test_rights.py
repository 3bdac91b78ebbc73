"""A broker where everybody has the rights that they need and no other: the group's topics, and the monitor."""

import logging
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kgs_core.config import Settings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import PermanentError
from kgs_core.group.protocol.codec import encode
from kgs_core.group.topics.assignments import KafkaAssignmentReader
from kgs_core.group.topics.controller_writer import KafkaControllerWriter
from kgs_core.group.topics.durable_writer import DurableWriter
from kgs_core.group.topics.operator_topic import OperatorTopicWriter
from kgs_core.group.topics.topic_reader import KafkaGroupTopicReader
from kgs_core.group.topics.topics import GroupTopic, GroupTopics, create_topics
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.monitor.kafka.monitor import measure
from kgs_core.monitor.kafka.partition_sizes import PartitionSizes
from kgs_core.monitor.speeds import Measure, Verdict
from kgs_core.runtime.fencings import Fencings
from tests.system import monitoring
from tests.system.group_topics import DESIRED, A, gives, heartbeat, messages_of, settings_of, target
from tests.system.pipeline import produce
from tests.waiting import wait_until

pytestmark = pytest.mark.slow(25)
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
ASSIGNMENTS, OPERATOR, REPORTS = GroupTopic.ASSIGNMENTS, GroupTopic.OPERATOR, GroupTopic.REPORTS
RIGHTS = {
    "controller": [(ASSIGNMENTS, "READ"), (ASSIGNMENTS, "WRITE"), (OPERATOR, "READ"), (REPORTS, "READ")]
    + [(each, right) for each in GroupTopic for right in ("CREATE", "DESCRIBE_CONFIGS")],
    "consumer": [(ASSIGNMENTS, "READ"), (REPORTS, "WRITE")],
    "operator": [(OPERATOR, "READ"), (OPERATOR, "WRITE")],
    "viewer": [(each, "READ") for each in GroupTopic],
    "watcher": [],
}


def client_of(user: str) -> dict[str, str]:
    return {**SASL, "sasl.username": user, "sasl.password": f"{user}-secret"}


def settings_as(guarded: EmbeddedKafka, user: str) -> Settings:
    return settings_of(guarded.bootstrap_servers, "guarded", client_of(user))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker with passwords and exactly the rights that `group_topics` lists."""
    users = "".join(f' user_{user}="{user}-secret"' for user in ("admin", *RIGHTS))
    settings = {
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="admin" password="admin-secret"{users};'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    with EmbeddedKafka.start(tmp_path_factory.mktemp("guarded"), settings=settings, log=print) as kafka:
        bindings = [bind(user, "TOPIC", which.of("guarded"), right) for user in RIGHTS for which, right in RIGHTS[user]]
        bindings.append(bind("controller", "TRANSACTIONAL_ID", "guarded-controller", "WRITE"))
        bindings.append(bind("viewer", "TRANSACTIONAL_ID", "guarded-controller", "DESCRIBE"))
        grant(kafka, *bindings)
        as_controller = settings_as(kafka, "controller")
        wait_until(lambda: may(as_controller), 30, "the rights arrive at the broker")
        yield kafka


def bind(user: str, kind: str, name: str, right: str) -> AclBinding:
    pattern, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    return AclBinding(ResourceType[kind], name, pattern, f"User:{user}", "*", AclOperation[right], allow)


def grant(kafka: EmbeddedKafka, *bindings: AclBinding) -> None:
    admin = AdminClient({**client_of("admin"), "bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for answer in admin.create_acls(list(bindings)).values():
        answer.result(20)


def may(settings: Settings) -> bool:
    try:
        create_topics(settings, KafkaAdmin(admin_client(settings)))
    except PermanentError:
        return False
    return True


def topics_as(guarded: EmbeddedKafka, user: str, *which: GroupTopic) -> GroupTopics:
    settings = settings_as(guarded, user)
    return GroupTopics(settings, KafkaAdmin(admin_client(settings)), which or tuple(GroupTopic))


def test_everybody_can_do_their_part_with_the_listed_rights(guarded: EmbeddedKafka) -> None:
    writer = KafkaControllerWriter(topics_as(guarded, "controller"))
    writer.fence()
    consumer = topics_as(guarded, "consumer", ASSIGNMENTS, REPORTS)
    assignments, reports = KafkaAssignmentReader(consumer, ConsumerId(1)), DurableWriter(consumer, GroupTopic.REPORTS)
    reports.append(heartbeat(1, 1), 10)
    newest_writer = OperatorTopicWriter(topics_as(guarded, "operator", OPERATOR))
    desired = newest_writer.write(DESIRED)
    assert newest_writer.read() == [desired]
    written = writer.write(target(), [gives(1, A)], [])
    assert wait_until(lambda: assignments.newest(1), 20, "the assignment") == written[1:]
    for user in ("controller", "viewer"):
        reader = KafkaGroupTopicReader(topics_as(guarded, user))
        assert {*map(repr, messages_of(reader.read_to_end()))} == {
            *map(repr, [target(), gives(1, A), DESIRED, heartbeat(1, 1)])
        }
        assert reader.poll(0.5) == []
        reader.close()
    for each in (assignments, reports, newest_writer):
        each.close()


@pytest.mark.parametrize("user", ["consumer", "operator", "viewer"])
def test_nobody_else_can_write_what_the_controller_writes(guarded: EmbeddedKafka, user: str) -> None:
    settings = settings_as(guarded, user)
    topic, refusals = ASSIGNMENTS.of(settings.group), []
    producer = Producer({**admin_client(settings), "log_level": 0, "message.timeout.ms": 10_000})
    key, value = encode(gives(1, A))
    producer.produce(topic, value, key, 1, on_delivery=lambda error, _: refusals.append(error))
    producer.flush(20)
    assert [error.name() for error in refusals] == ["TOPIC_AUTHORIZATION_FAILED"]
    silent = logging.Logger("client", logging.CRITICAL + 1)
    stolen = Producer({**admin_client(settings), "logger": silent, "transactional.id": f"{settings.group}-controller"})
    with pytest.raises(Exception, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        stolen.init_transactions(20)


def test_who_may_ask_for_fencings_counts_them_and_who_may_not_counts_nothing(
    guarded: EmbeddedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    KafkaControllerWriter(topics_as(guarded, "controller")).fence()
    counts = {}
    for user in ("viewer", "operator"):
        fencings = Fencings(settings_as(guarded, user))
        fencings.look()
        fencings.close()
        counts[user] = fencings.count
    assert counts == {"viewer": 0, "operator": None}
    assert "kgs_controller_fenced_total: not given out" in caplog.text


def test_a_missing_right_is_reported_at_once(guarded: EmbeddedKafka) -> None:
    writer = KafkaControllerWriter(topics_as(guarded, "viewer"))
    with pytest.raises(PermanentError, match=r"controller of group guarded: fence: .*grant this user the right"):
        writer.fence()
    with pytest.raises(PermanentError, match="grant this user the right"):
        topics_as(guarded, "consumer")
    with pytest.raises(PermanentError, match="grant this user the right"):
        DurableWriter(topics_as(guarded, "viewer", REPORTS), GroupTopic.REPORTS).append(heartbeat(1, 1), 10)


def test_without_the_right_to_sizes_speeds_come_from_offsets(
    guarded: EmbeddedKafka, topic_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap, tp, client = guarded.bootstrap_servers, TopicPartition(f"{topic_prefix}a", 0), client_of("watcher")
    assert KafkaAdmin({"bootstrap.servers": bootstrap, **client_of("admin")}).create_topic(tp.topic, 1)
    grant(guarded, bind("watcher", "TOPIC", tp.topic, "READ"))
    produce(bootstrap, tp.topic, [b"x" * 1000] * 1000, **client_of("admin"))
    settings = monitoring.settings_of(bootstrap, topic_prefix, client)
    found = wait_until(lambda: measure(settings), 30, "the rights arrive at the broker")
    assert found.reading.measure is Measure.OFFSETS
    assert found.reading.partitions[tp].bytes_per_record == pytest.approx(1010, rel=0.02)
    assert found.speeds[tp].verdict is Verdict.ESTIMATED
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) == 1
    grant(guarded, bind("watcher", "BROKER", "kafka-cluster", "DESCRIBE"))
    with closing(PartitionSizes(settings)) as sizes:
        assert sizes.read().partitions[tp].size_bytes == pytest.approx(1_010_000, rel=0.02)
        assert sizes.measure is Measure.LOG_DIRS
