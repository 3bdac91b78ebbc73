"""Recoveries that a person accepts for good, one commit each: lost records, a recreated topic."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from kgs_core.config import Settings, TableSpec
from kgs_core.errors import ConfigError, UnsafeError
from kgs_core.kafka.admin import admin_of
from kgs_core.kafka.client_config import reading_client
from kgs_core.kafka.committed_offsets import GroupOffsets
from kgs_core.lake.rule.first_start import offsets_read
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.discovery import find_topic
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.topic_table import TopicTable, earlier_topic_ids, has_started
from kgs_core.model import OffsetRange, TopicId, TopicPartition
from kgs_core.ports import CommitOutcome


@dataclass(frozen=True, slots=True)
class NewStart:
    """Start of reading a topic that was created again, or whose table is gone.

    Attributes:
        earlier: ids of the topics that filled the table before; none: the table is gone.
        offsets: partition -> first offset of the topic.
    """

    table: str
    earlier: tuple[TopicId, ...]
    topic_id: TopicId
    offsets: dict[int, int]


class Acceptance:
    """Records accepted losses and recreated topics for good, in the lake or the group offsets. Changes no row."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = admin_of(settings)
        self._lake = open_lake(settings.lake)

    def accept_loss(self, tp: TopicPartition, lost: OffsetRange, *, even_if_readable: bool = False) -> str:
        """Move the position of a partition over offsets that were lost.

        Args:
            lost: the lost offsets, from the table's position on.
            even_if_readable: also if the log still has some of them.

        Returns:
            The table's path.

        Raises:
            ConfigError: no rule fits the topic, or Kafka has no such partition.
            UnsafeError: the position is another, or the offsets are still there or not there yet.
            TransientError: Kafka or the store did not answer.
        """
        spec, topic_id, partitions = find_topic(self._settings, self._admin, tp.topic)
        if tp.partition >= partitions:
            raise ConfigError([f"{tp}: topic {tp.topic} has the partitions 0 to {partitions - 1}"])
        self._check_log(tp, lost, even_if_readable=even_if_readable)
        table = self._table(spec, topic_id)
        position = table.stored_position(tp.partition)
        if position != lost.start or table.accept_gap(tp.partition, *lost) is CommitOutcome.REFUSED:
            now = table.stored_position(tp.partition)
            there = "has no position of it yet" if now is None else f"stands at {now}"
            raise UnsafeError(f"{tp}: table {spec.table} {there}, not at {lost.start}: nothing was recorded")
        return spec.table

    def accept_topic(self, topic: str) -> NewStart:
        """Begin a topic that was deleted and created again, or whose table is gone.

        A topic created again is read from its first offsets into the same table. Where the table is gone, the group's
        offsets in Kafka are marked: the consumer that opens the topic then makes the table and begins as the rule says.

        Raises:
            ConfigError: no rule fits the topic, or Kafka has none of that name.
            UnsafeError: the topic is not refused, or it was accepted before.
            TransientError: Kafka or the store did not answer.
        """
        spec, topic_id, partitions = find_topic(self._settings, self._admin, topic)
        ids = AppIds(self._settings.group, topic, topic_id)
        if has_started(self._lake, spec.table, ids):
            raise UnsafeError(f"topic {topic}: table {spec.table} is filled from this topic, id {topic_id}, already")
        earlier = earlier_topic_ids(self._lake, spec.table, ids)
        found = self._admin.offsets([TopicPartition(topic, p) for p in range(partitions)], "earliest")
        offsets = {tp.partition: offset for tp, offset in sorted(found.items())}
        if earlier:
            self._table(spec, topic_id).fix_start(offsets)
        else:
            self._begin_anew(spec, topic_id, found)
        return NewStart(spec.table, tuple(earlier), topic_id, offsets)

    def _begin_anew(self, spec: TableSpec, topic_id: TopicId, first: Mapping[TopicPartition, int]) -> None:
        client = reading_client(self._settings)
        with closing(GroupOffsets(client, self._settings.group)) as group:
            if not offsets_read(group.committed(first), topic_id, spec.table, spec.rule.start):
                raise UnsafeError(
                    f"topic {spec.topic}: table {spec.table} was never filled from it, nor from another topic of this "
                    "name: start a consumer"
                )
            group.begin_anew(first)

    def _check_log(self, tp: TopicPartition, lost: OffsetRange, *, even_if_readable: bool) -> None:
        first, end = self._admin.offsets([tp], "earliest")[tp], self._admin.offsets([tp], "latest")[tp]
        if lost.end > end:
            raise UnsafeError(f"{tp}: the log ends at {end}: what comes later cannot be lost yet")
        if lost.end > first and not even_if_readable:
            readable = f"{max(first, lost.start)} to {lost.end - 1}"
            raise UnsafeError(
                f"{tp}: offsets {readable} are still in the log: accept {lost.start}-{first} at most, or give "
                "--even-if-readable to pass over them"
                if lost.start < first
                else f"{tp}: offsets {readable} are still in the log: give --even-if-readable to pass over them"
            )

    def _table(self, spec: TableSpec, topic_id: TopicId) -> TopicTable:
        """The table with its existing columns: no row is written, so no transform needs to be loaded."""
        ids = AppIds(self._settings.group, spec.topic, topic_id)
        return TopicTable(self._lake, spec, ids, self._lake.open(spec.table).schema)
