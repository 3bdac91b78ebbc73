"""What a person accepts for good: records that are lost, a topic that was made again. Each is a commit of its own."""

from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from kgs_core.adapters.delta_log import load_transactions
from kgs_core.adapters.delta_table import Outcome
from kgs_core.adapters.kafka_admin import KafkaAdmin
from kgs_core.adapters.kafka_clients import admin_client
from kgs_core.adapters.storage import Storage, one_line
from kgs_core.adapters.topic_opening import earlier_topic_ids
from kgs_core.adapters.topic_table import TopicTable
from kgs_core.config import Settings, TableSpec, resolve_tables
from kgs_core.consumer.app_ids import AppIds
from kgs_core.errors import ConfigError, TransientError, UnsafeError
from kgs_core.model import OffsetRange, TopicId, TopicPartition


@dataclass(frozen=True, slots=True)
class NewStart:
    """Where reading of a topic that was created again begins.

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
        self._storage = Storage(settings.lake.root, settings.lake.storage_options)

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
        spec, topic_id, partitions = self._found(tp.topic)
        if tp.partition >= partitions:
            raise ConfigError([f"{tp}: topic {tp.topic} has the partitions 0 to {partitions - 1}"])
        self._check_log(tp, lost, even_if_readable=even_if_readable)
        table = self._table(spec, topic_id)
        position = table.stored_position(tp.partition)
        if position != lost.start or table.accept_gap(tp.partition, *lost) is Outcome.REFUSED:
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
        spec, topic_id, partitions = self._found(topic)
        ids = AppIds(self._settings.group, topic, topic_id)
        if any(ids.start(p) in load_transactions(self._storage, spec.table) for p in range(partitions)):
            raise UnsafeError(f"topic {topic}: table {spec.table} is filled from this topic, id {topic_id}, already")
        earlier = earlier_topic_ids(self._storage, spec.table, ids)
        if not earlier:
            raise UnsafeError(
                f"topic {topic}: table {spec.table} was never filled from another topic of this name: start a consumer"
            )
        found = self._admin.offsets([TopicPartition(topic, p) for p in range(partitions)], "earliest")
        offsets = {tp.partition: offset for tp, offset in sorted(found.items())}
        self._table(spec, topic_id).fix_start(offsets)
        return NewStart(spec.table, tuple(earlier), topic_id, offsets)

    def _found(self, topic: str) -> tuple[TableSpec, TopicId, int]:
        described = self._admin.describe([topic]).get(topic)
        if described is None:
            raise ConfigError([f"topic {topic}: Kafka {self._settings.kafka.bootstrap_servers} has no such topic"])
        # All topics, not this one alone: two that would share a table are a mistake here as well.
        spec = resolve_tables(self._settings, self._admin.list_topics()).get(topic)
        if spec is None:
            raise ConfigError([f"topic {topic}: no rule of the configuration fits it: look at its 'topics'"])
        return spec, described.topic_id, described.partitions

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
        try:
            found = DeltaTable(self._storage.uri(spec.table), storage_options=self._storage.delta_options())
        except TableNotFoundError as e:
            raise UnsafeError(f"table {spec.table}: not there: start a consumer, it makes the table") from e
        except Exception as e:
            raise TransientError(f"table {spec.table}: {one_line(e)}") from e
        ids = AppIds(self._settings.group, spec.topic, topic_id)
        return TopicTable(self._storage, self._settings.lake, spec, ids, pa.schema(found.schema()))
