"""A consumer group of Kafka's own protocols as it is: its members, what each reads, how far it has committed."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import ConsumerGroupDescription  # type: ignore[attr-defined]  # declares no re-exports

from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.committed_offsets import MARK
from kgs_core.model import TopicPartition

PATIENCE_S = 30.0
"""A rebalance takes seconds; a group that does nothing else has no assignment that one could judge."""
_AGAIN_S = 1.0
_REBALANCING = frozenset(
    {
        ConsumerGroupState.PREPARING_REBALANCING,
        ConsumerGroupState.COMPLETING_REBALANCING,
        ConsumerGroupState.UNKNOWN,  # librdkafka's word for ASSIGNING and RECONCILING
    }
)
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member: its id, its instance id or else client id and host, and what it reads."""

    member_id: str
    name: str
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """The group at one moment.

    Attributes:
        time_s: of that moment, monotonic.
        members: by name; names may repeat.
        committed: next offset to be read, of each partition that the group has committed.
    """

    time_s: float
    members: tuple[GroupMember, ...]
    committed: Mapping[TopicPartition, int]

    @property
    def topics(self) -> frozenset[str]:
        """Names of what its members read; of a group without any, of what it has committed."""
        read = frozenset(tp.topic for one in self.members for tp in one.partitions)
        return read or frozenset(tp.topic for tp in self.committed)


def read_group(admin: KafkaAdmin, group: str) -> ConsumerGroup:
    """The group, once it is not rebalancing.

    Raises:
        PermanentError: there is no such group, it reads nothing, or kgs reads by it; Kafka refuses.
        TransientError: Kafka does not answer, or the group rebalances for longer than `PATIENCE_S`.
    """
    if group not in (names := admin.list_groups()):
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        there = f"there are {', '.join(map(repr, names[:_SHOWN]))}{more}" if names else "there is none"
        what = "no consumer group of this name that this user may describe (a share group is none)"
        raise PermanentError(f"group {group!r}: {what}: check the name: {there}")
    give_up = time.monotonic() + PATIENCE_S
    while (found := admin.describe_group(group)).state in _REBALANCING:
        if time.monotonic() > give_up:
            raise TransientError(
                f"group {group!r}: has been rebalancing for {PATIENCE_S:g} s: try again when it is stable"
            )
        time.sleep(_AGAIN_S)
    seen = _seen(admin, group, found)
    if not seen.topics:
        raise PermanentError(f"group {group!r}: reads no topic, and has committed no offset: nothing to plan for")
    return seen


def group_now(admin: KafkaAdmin, group: str) -> ConsumerGroup:
    """The group as it is, rebalancing or not.

    Raises:
        PermanentError: kgs reads by it; Kafka refuses.
        TransientError: Kafka does not answer.
    """
    return _seen(admin, group, admin.describe_group(group))


def _seen(admin: KafkaAdmin, group: str, described: ConsumerGroupDescription) -> ConsumerGroup:
    asked_s = time.monotonic()
    committed = admin.committed_offsets(group)
    time_s = (asked_s + time.monotonic()) / 2
    if any((each.metadata or "").startswith(MARK) for each in committed):
        raise PermanentError(f"group {group!r}: kgs reads by it: leave --group away, and name its kgs.yaml by --config")
    members = [
        GroupMember(
            each.member_id,
            each.group_instance_id or f"{each.client_id} {each.host.strip('/')}",
            frozenset(TopicPartition(tp.topic, tp.partition) for tp in each.assignment.topic_partitions),
        )
        for each in described.members
    ]
    offsets = {TopicPartition(each.topic, each.partition): each.offset for each in committed if each.offset >= 0}
    return ConsumerGroup(time_s, tuple(sorted(members, key=lambda one: (one.name, one.member_id))), offsets)
