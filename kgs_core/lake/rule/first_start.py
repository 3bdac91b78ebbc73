"""Whether a topic without positions in its table is new to the group: the group's offsets in Kafka remember. Pure.

Every offset that kgs commits carries the topic's id and the table's path. So a lake that was moved, or is not mounted,
is told from a first start, and so are another table in the rule, and the offsets of another tool, which
`start: committed` takes over.
An offset is committed after the lake's commit. So offsets are asked first and the table second: where there are
offsets and still no start, no start was ever lost to a race.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kgs_core.model import TopicId, TopicPartition

BEGINS_ANEW = TopicId("begins-anew")
"""Stands for the topic id where a person has accepted that the table is gone: no topic has this id."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A group's committed offset of one partition.

    Attributes:
        topic_id: the topic whose records below it are in the lake; None: not committed by this version of kgs.
        table: path of the table that has them.
    """

    offset: int
    topic_id: TopicId | None = None
    table: str = ""

    def is_of(self, other: "GroupOffset") -> bool:
        """Whether both are of the same topic and table."""
        return (self.topic_id, self.table) == (other.topic_id, other.table)

    def covers(self, other: "GroupOffset") -> bool:
        """Whether it says as much or more of the same topic and table."""
        return self.is_of(other) and self.offset >= other.offset


def offsets_read(
    committed: Mapping[TopicPartition, GroupOffset], topic_id: TopicId, table: str, start: str
) -> dict[TopicPartition, int]:
    """Partition -> offset up to which the group has read this topic into this table, by its offsets in Kafka.

    `start`: of its rule; `committed` takes over what others have committed.
    """
    ours = {(topic_id, table)} if start == "committed" else {(topic_id, table), (None, "")}
    return {tp: at.offset for tp, at in sorted(committed.items()) if (at.topic_id, at.table) in ours}


def second_start(table: str, group: str, read: Mapping[TopicPartition, int]) -> str:
    """Why a topic that was read before is not begun again, and the way out."""
    shown = ", ".join(f"{tp} up to {offset}" for tp, offset in list(read.items())[:_SHOWN])
    more = f" and {len(read) - _SHOWN} more partitions" if len(read) > _SHOWN else ""
    topic = next(iter(read)).topic
    return (
        f"table {table}: not there, or without positions of topic {topic}, though group {group} has read {shown}{more} "
        f"(its offsets in Kafka): bring the lake back, or start over: kgs accept-topic {topic} --yes"
    )
