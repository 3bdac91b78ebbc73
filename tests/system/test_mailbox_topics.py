"""The group's topics: made as the protocol needs them, checked, and noticed when they are made again."""

from collections.abc import Iterator

import pytest

from kgs_core.adapters.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.adapters.group.operator_topic import OperatorTopicWriter
from kgs_core.adapters.group.topics import GroupTopic, GroupTopics, create_topics
from kgs_core.adapters.kafka.admin import KafkaAdmin
from kgs_core.errors import ConfigError, PermanentError, UnsafeError
from tests.system.mailboxes import WISH, A, Group, group_on, order, said, settings_of, target
from tests.waiting import wait_until


@pytest.fixture
def group(kafka: EmbeddedKafka, topic_prefix: str) -> Iterator[Group]:
    with group_on(kafka.bootstrap_servers, topic_prefix) as group:
        yield group


def test_a_topic_that_is_made_again_is_noticed_by_everybody_who_decides_by_it(group: Group) -> None:
    outbox, inbox, box, pen = group.outbox(), group.inbox(), group.order_box(1), OperatorTopicWriter(group.topics)
    inbox.read_to_end()
    old = {name: str(found) for name, found in group.admin.topic_ids(list(map(group.name, GroupTopic))).items()}
    for name in old:
        group.admin.delete_topic(name)
    with pytest.raises(UnsafeError, match="now has no such topic"):
        outbox.write(target(), [], [])
    create_topics(group.settings, group.admin)
    orders = group.name(GroupTopic.ORDERS)
    group.outbox().write(target(), [order(1, A)], [])
    new = str(group.admin.topic_ids([orders])[orders])
    both = f"{orders}: opened as topic id {old[orders]}, Kafka now has {new}"
    for act in (
        lambda: outbox.write(target(), [], []),
        outbox.fence,
        inbox.read_to_end,
        lambda: pen.write(WISH),
        pen.read,
        lambda: wait_until(lambda: inbox.poll(1), 20, "noticed"),
        lambda: wait_until(lambda: box.newest(1), 20, "noticed"),
    ):
        with pytest.raises(UnsafeError, match=both):
            act()
    assert said(group.inbox().read_to_end()) == [target(), order(1, A)]


def test_topics_are_made_as_the_protocol_needs_them_and_again_means_nothing(group: Group) -> None:
    create_topics(group.settings, group.admin)
    found = {which: group.admin.topic_config(group.name(which)) for which in GroupTopic}
    assert {which: config["cleanup.policy"] for which, config in found.items()} == {
        GroupTopic.ORDERS: "compact", GroupTopic.WISHES: "compact", GroupTopic.REPORTS: "delete"
    }  # fmt: skip
    assert {config["message.timestamp.type"] for config in found.values()} == {"LogAppendTime"}
    assert found[GroupTopic.REPORTS]["retention.ms"] == str(24 * 3_600_000)
    assert [len(group.topics.partitions(which)) for which in GroupTopic] == [4, 1, 1]


def test_topics_that_are_not_as_they_must_be_are_refused_with_every_fault(
    kafka: EmbeddedKafka, admin: KafkaAdmin, topic_prefix: str
) -> None:
    settings = settings_of(kafka.bootstrap_servers, topic_prefix, metadata_partitions=8)
    with pytest.raises(PermanentError, match=r"no topic .*metadata.*start the controller"):
        GroupTopics(settings, admin)
    orders, reports = GroupTopic.ORDERS.of(settings.group), GroupTopic.REPORTS.of(settings.group)
    admin.create_topic(orders, 2)
    admin.create_topic(reports, 3, config={"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"})
    with pytest.raises(ConfigError) as refused:
        create_topics(settings, admin)
    assert len(refused.value.problems) == 5
    text = "\n".join(refused.value.problems)
    for part in (
        f"topic {orders}: has 2 partitions, membership.metadata_partitions is 8: raise",
        f"topic {orders}: cleanup.policy is delete, must be compact: `kafka-configs.sh",
        f"topic {orders}: message.timestamp.type is CreateTime, must be LogAppendTime",
        f"topic {reports}: has 3 partitions, must have one",
        f"topic {reports}: cleanup.policy is compact, must be delete",
    ):
        assert part in text
    with pytest.raises(ConfigError, match="has 2 partitions"):
        GroupTopics(settings, admin, [GroupTopic.ORDERS])
