"""Terms of the group, asked of its topics before a consumer joins or reads beside it."""

from collections.abc import Collection, Mapping
from contextlib import closing

from kgs_core.config import Settings
from kgs_core.errors import ConfigError
from kgs_core.group.controller.terms import other_terms
from kgs_core.group.protocol import DesiredState, Message, RunState, Target
from kgs_core.group.topics.reader import GroupReader, Refusals
from kgs_core.group.topics.topic_reader import READ_TIMEOUT_S
from kgs_core.group.topics.topics import GroupTopic, GroupTopics
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.model import ConsumerId, TopicPartition


def refuse_other_terms(topics: GroupTopics, consumer: ConsumerId) -> None:
    """Refuse to join with another configuration than the group has, or is to have by `kgs replace`.

    Rows would go into two lakes or two tables, each with a part; or a consumer would be given up before it knows.

    Raises:
        ConfigError: names what differs, and the way out.
    """
    target = _newest(topics, (GroupTopic.ASSIGNMENTS,)).get(Target)
    if isinstance(target, Target) and target.terms and (different := other_terms(topics.settings, target.terms)):
        raise ConfigError(
            [f"consumer {consumer}: group {topics.settings.group} runs with {what}" for what in different]
        )


def refuse_controlled_group(settings: Settings, admin: KafkaAdmin) -> None:
    """Refuse a fixed share under the name of a group that a controller gives its partitions to.

    Each record would still be once in its table; but both would read it, and each drops what the other has committed.

    Raises:
        ConfigError: there is such a group, and it is not stopped.
    """
    which = (GroupTopic.ASSIGNMENTS, GroupTopic.OPERATOR)
    if not {each.of(settings.group) for each in which} <= set(admin.list_topics()):
        return
    newest = _newest(GroupTopics(settings, admin, which), which)
    desired = newest.get(DesiredState)
    if Target in newest and not (isinstance(desired, DesiredState) and desired.state is RunState.STOPPED):
        raise ConfigError(
            [
                f"group {settings.group}: a controller says what its consumers read: leave out --share to join it, "
                "or end it first (kgs stop), or give this one another group and lake.root"
            ]
        )


def _newest(topics: GroupTopics, which: Collection[GroupTopic]) -> Mapping[type[Message], Message]:
    """The newest message of each kind in the first partition of these topics."""
    tps: list[TopicPartition] = [topics.partitions(each)[0] for each in which]
    ends = topics.admin.offsets(tps, "latest")
    with closing(GroupReader(topics, topics.admin.offsets(tps, "earliest"), Refusals())) as reader:
        return {type(each.received.message): each.received.message for each in reader.take_up_to(ends, READ_TIMEOUT_S)}
