"""The group's topics: made as the protocol needs them, checked, and noticed when they are made again."""

from collections.abc import Iterator

import pytest

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import ConfigError, PermanentError, UnsafeError
from kgs_core.group.protocol import Message
from kgs_core.group.topics.operator_topic import OperatorTopicWriter
from kgs_core.group.topics.topics import GroupTopic, GroupTopics, create_topics
from kgs_core.kafka.admin import KafkaAdmin
from tests.system.group_topics import (
    DESIRED,
    A,
    B,
    C,
    Group,
    assignments_in,
    gives,
    group_on,
    messages_of,
    settings_of,
    target,
)
from tests.topics import delete_topic
from tests.waiting import wait_until


@pytest.fixture
def group(kafka: EmbeddedKafka, topic_prefix: str) -> Iterator[Group]:
    with group_on(kafka.bootstrap_servers, topic_prefix) as group:
        yield group


def test_a_topic_that_is_made_again_is_noticed_by_everybody_who_decides_by_it(group: Group) -> None:
    writer, reader, port, newest_writer = (
        group.writer(),
        group.reader(),
        group.assignment_reader(1),
        OperatorTopicWriter(group.topics),
    )
    reader.read_to_end()
    old = {name: str(found) for name, found in group.admin.topic_ids(list(map(group.name, GroupTopic))).items()}
    for name in old:
        delete_topic(group.admin, name)
    with pytest.raises(UnsafeError, match="now has no such topic"):
        writer.write(target(), [], [])
    create_topics(group.settings, group.admin)
    assignments = group.name(GroupTopic.ASSIGNMENTS)
    group.writer().write(target(), [gives(1, A)], [])
    new = str(group.admin.topic_ids([assignments])[assignments])
    both = f"{assignments}: opened as topic id {old[assignments]}, Kafka now has {new}"
    for act in (
        lambda: writer.write(target(), [], []),
        writer.fence,
        reader.read_to_end,
        lambda: newest_writer.write(DESIRED),
        newest_writer.read,
        lambda: wait_until(lambda: reader.poll(1), 20, "noticed"),
        lambda: wait_until(lambda: port.newest(1), 20, "noticed"),
    ):
        with pytest.raises(UnsafeError, match=both):
            act()
    assert messages_of(group.reader().read_to_end()) == [target(), gives(1, A)]


def test_topics_are_made_as_the_protocol_needs_them_and_again_means_nothing(group: Group) -> None:
    create_topics(group.settings, group.admin)
    found = {which: group.admin.topic_config(group.name(which)) for which in GroupTopic}
    assert {which: config["cleanup.policy"] for which, config in found.items()} == {
        GroupTopic.ASSIGNMENTS: "compact", GroupTopic.OPERATOR: "compact", GroupTopic.REPORTS: "delete"
    }  # fmt: skip
    assert {config["message.timestamp.type"] for config in found.values()} == {"LogAppendTime"}
    assert found[GroupTopic.REPORTS]["retention.ms"] == str(48 * 3_600_000)
    assert [len(group.topics.partitions(which)) for which in GroupTopic] == [64, 1, 1]


def test_topics_that_are_not_as_they_must_be_are_refused_with_every_fault(
    kafka: EmbeddedKafka, admin: KafkaAdmin, topic_prefix: str
) -> None:
    settings = settings_of(kafka.bootstrap_servers, topic_prefix)
    with pytest.raises(PermanentError, match=r"no topic .*metadata.*start the controller"):
        GroupTopics(settings, admin)
    assignments, reports = GroupTopic.ASSIGNMENTS.of(settings.group), GroupTopic.REPORTS.of(settings.group)
    admin.create_topic(assignments, 1)
    admin.create_topic(reports, 3, config={"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"})
    with pytest.raises(ConfigError) as refused:
        create_topics(settings, admin)
    assert len(refused.value.problems) == 7
    text = "\n".join(refused.value.problems)
    for part in (
        f"topic {assignments}: has one partition, two are the least: `kafka-topics.sh",
        f"topic {assignments}: cleanup.policy is delete, must be compact: `kafka-configs.sh",
        f"topic {assignments}: message.timestamp.type is CreateTime, must be LogAppendTime",
        f"topic {assignments}: max.message.bytes is 1048588, must be at least 8388608: `kafka-configs.sh --alter "
        f"--topic {assignments} --add-config max.message.bytes=8388608`",
        f"topic {reports}: max.message.bytes is 1048588, must be at least 8388608: `kafka-configs.sh",
        f"topic {reports}: has 3 partitions, must have one",
        f"topic {reports}: cleanup.policy is compact, must be delete",
    ):
        assert part in text
    with pytest.raises(ConfigError, match="has one partition"):
        GroupTopics(settings, admin, [GroupTopic.ASSIGNMENTS])


def test_consumers_that_share_a_partition_are_given_their_own_assignments(
    kafka: EmbeddedKafka, topic_prefix: str
) -> None:
    """On a broker: that one partition holds several keys and that offsets of one queue are compared is Kafka's part."""
    with group_on(kafka.bootstrap_servers, topic_prefix) as group:
        queues = {number: group.assignment_reader(number) for number in (1, 3, 64)}
        writer = group.writer()
        writer.write(target(), [gives(1, A), gives(64, B), gives(3, C)], [])
        writer.write(None, [gives(64, B, A)], [])
        assert messages_of(queues[1].newest(10)) == [gives(1, A)]
        assert messages_of(queues[3].newest(10)) == [gives(3, C)]
        received: list[Message] = []
        wait_until(
            lambda: received.extend(messages_of(queues[64].newest(1))) or len(received) > 1, 20, "both are there"
        )
        assert received == [gives(64, B), gives(64, B, A)]
        assert sorted(map(repr, assignments_in(group.reader().read_to_end()))) == sorted(
            map(repr, [gives(1, A), gives(64, B), gives(3, C), gives(64, B, A)])
        )
