"""The monitor where the cluster does not tell everybody everything."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import Producer

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import PermanentError
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka.monitor import measure
from kgs_core.monitor.kafka.partition_sizes import PartitionSizes
from kgs_core.monitor.speeds import Measure, Verdict
from tests.system.monitoring import settings_of
from tests.waiting import wait_until

ADMIN = {"sasl.username": "admin", "sasl.password": "admin-secret"}
WATCHER = {"sasl.username": "watcher", "sasl.password": "watcher-secret"}
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker with passwords and rights."""
    users = "".join(f' user_{user["sasl.username"]}="{user["sasl.password"]}"' for user in (ADMIN, WATCHER))
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
        yield kafka


def grant(guarded: EmbeddedKafka, kind: str, name: str, operation: str) -> None:
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
    )

    admin = AdminClient({"bootstrap.servers": guarded.bootstrap_servers, **SASL, **ADMIN})
    binding = AclBinding(
        ResourceType[kind],
        name,
        ResourcePatternType.LITERAL if kind == "BROKER" else ResourcePatternType.PREFIXED,
        "User:watcher",
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )
    for answer in admin.create_acls([binding]).values():
        answer.result(10)


@pytest.mark.slow
def test_without_the_right_to_sizes_speeds_come_from_offsets(
    guarded: EmbeddedKafka, topic_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap, tp = guarded.bootstrap_servers, TopicPartition(f"{topic_prefix}a", 0)
    KafkaAdmin({"bootstrap.servers": bootstrap, **SASL, **ADMIN}).create_topic(tp.topic, 1)
    grant(guarded, "TOPIC", topic_prefix, "READ")
    producer = Producer({"bootstrap.servers": bootstrap, **SASL, **ADMIN})
    for _ in range(1000):
        producer.produce(tp.topic, b"x" * 1000)
    assert producer.flush(20) == 0
    client = {**SASL, **WATCHER}
    with pytest.raises(PermanentError, match="grant this user the right Describe on the Cluster"):
        measure(settings_of(bootstrap, topic_prefix, client, measure="log_dirs"))
    found = wait_until(
        lambda: measure(settings_of(bootstrap, topic_prefix, client)), 30, "the rights arrive at the broker"
    )
    assert found.reading.measure is Measure.OFFSETS
    assert found.reading.partitions[tp].bytes_per_record == pytest.approx(1010, rel=0.02)
    assert found.speeds[tp].verdict is Verdict.ESTIMATED
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) == 1
    grant(guarded, "BROKER", "kafka-cluster", "DESCRIBE")
    sizes = PartitionSizes(settings_of(bootstrap, topic_prefix, client))
    assert sizes.read().partitions[tp].size_bytes == pytest.approx(1_010_000, rel=0.02)
    assert sizes.measure is Measure.LOG_DIRS
    sizes.close()
