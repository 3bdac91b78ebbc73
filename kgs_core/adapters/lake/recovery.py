"""Recovery that a person accepts for good, a commit each: records that are lost, a topic that was made again."""

from dataclasses import dataclass

from kgs_core.adapters.kafka.admin import KafkaAdmin
from kgs_core.adapters.kafka.client_config import admin_client
from kgs_core.adapters.lake.discovery import find_topic
from kgs_core.adapters.lake.factory import open_lake
from kgs_core.adapters.lake.topic_table import TopicTable, earlier_topic_ids
from kgs_core.config import Settings, TableSpec
from kgs_core.errors import ConfigError, UnsafeError
from kgs_core.exactly_once.positions import AppIds
from kgs_core.model import OffsetRange, TopicId, TopicPartition
from kgs_core.ports import CommitOutcome


@dataclass(frozen=True, slots=True)
class NewStart:
    """Start of reading a topic that was created again.

    Attributes:
        earlier: ids of the topics that the table was filled from before.
        offsets: partition -> first offset.
    """

    table: str
    earlier: tuple[TopicId, ...]
    topic_id: TopicId
    offsets: dict[int, int]


class Acceptance:
    """Records in the lake what a person accepts. Changes no row and nothing in Kafka."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = KafkaAdmin(admin_client(settings))
        self._lake = open_lake(settings.lake)

    def accept_loss(self, tp: TopicPartition, lost: OffsetRange, *, even_if_readable: bool = False) -> str:
        """Move the position of a partition over offsets that were lost.

        Args:
            lost: it must begin at the table's position.
            even_if_readable: also when the log still has some of them.

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
        """Begin to read a topic that was deleted and created again, at its first offsets, into the same table.

        Raises:
            ConfigError: no rule fits the topic, or Kafka has none of that name.
            UnsafeError: the table was not filled from an earlier topic of this name, or it was accepted before.
            TransientError: Kafka or the store did not answer.
        """
        spec, topic_id, partitions = find_topic(self._settings, self._admin, topic)
        ids = AppIds(self._settings.group, topic, topic_id)
        if any(ids.start(p) in self._lake.all_versions(spec.table) for p in range(partitions)):
            raise UnsafeError(f"topic {topic}: table {spec.table} is filled from this topic, id {topic_id}, already")
        earlier = earlier_topic_ids(self._lake, spec.table, ids)
        if not earlier:
            raise UnsafeError(
                f"topic {topic}: table {spec.table} was never filled from another topic of this name: start a consumer"
            )
        found = self._admin.offsets([TopicPartition(topic, p) for p in range(partitions)], "earliest")
        offsets = {tp.partition: offset for tp, offset in sorted(found.items())}
        self._table(spec, topic_id).fix_start(offsets)
        return NewStart(spec.table, tuple(earlier), topic_id, offsets)

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
        """The table with the columns that it has: no row is written, and a transform need not be loaded for that."""
        ids = AppIds(self._settings.group, spec.topic, topic_id)
        return TopicTable(self._lake, spec, ids, self._lake.open(spec.table).schema)
