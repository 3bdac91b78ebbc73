"""A sink without Spark: the same reading, writing and commits as a consumer's, to be broken on purpose."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Producer
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction

from kgs_core.config import Settings, parse_settings, resolve_tables
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.ingest.fetch.fetch_client import Fetched
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.ingest.worker.topic_job import TopicJob, TopicPlan
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client, reading_client
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.row_schema import parsed_schema
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.topic_table import TopicTable
from kgs_core.model import TopicPartition
from kgs_core.ports import CommitOutcome, FileWritten
from tests.processing import process_topic

GOOD, BAD = b'{"n": 1}', b"not JSON"
_YAML = """
group: {group}
kafka: {{bootstrap_servers: "{servers}"}}
lake: {{root: {root}, checkpoint_interval: 5}}
topics:
  - pattern: '{pattern}'
    table: bronze/{{topic}}
    format: json
    schema: {{n: int}}
"""


def settings_text(kafka: EmbeddedKafka, root: Path, prefix: str) -> str:
    """All topics with this prefix into tables of one column."""
    pattern = prefix.replace(".", "[.]") + ".*"
    return _YAML.format(group="audited", servers=kafka.bootstrap_servers, root=root, pattern=pattern)


def settings_for(kafka: EmbeddedKafka, root: Path, prefix: str) -> Settings:
    return parse_settings(settings_text(kafka, root, prefix).encode(), "test", {})


def send(kafka: EmbeddedKafka, topic: str, *values: bytes, partition: int = 0) -> None:
    """Acknowledged when it returns."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "all"})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0


def transactional(kafka: EmbeddedKafka, topic: str) -> Producer:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    return producer


class SmallSink:
    """Reads all partitions of one topic into its table."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self.settings = settings
        self.topic = topic
        self.admin = KafkaAdmin(admin_client(settings))
        self.storage = Storage(settings.lake.root)
        self.spec = resolve_tables(settings, [topic])[topic]
        known = self.admin.describe([topic])[topic]
        self.tps = [TopicPartition(topic, p) for p in range(known.partitions)]
        self.schema = parsed_schema(self.spec.rule)
        self.ids = AppIds(settings.group, topic, known.topic_id)
        self.table = TopicTable(open_lake(settings.lake), self.spec, self.ids, self.schema)
        self.table.open()
        self.table.fix_start({tp.partition: o for tp, o in self.admin.offsets(self.tps, "earliest").items()})

    def read(
        self, start: dict[int, int] | None = None, batch_bytes: int = 1_000_000, isolation: str = "read_committed"
    ) -> TopicBatch:
        """One batch, written and not committed; from the table's positions where none are given."""
        found = self.table.positions({tp.partition for tp in self.tps})
        start = dict(found.next_offset) if start is None else start
        wanted = {TopicPartition(self.topic, p): o for p, o in start.items()}
        session = NativeFetchSession({**reading_client(self.settings), "isolation.level": isolation})
        deadline = time.monotonic() + 30
        try:
            fetched = Fetched()
            while not fetched.ranges and time.monotonic() < deadline:
                fetched = session.gather(wanted, batch_bytes, 0.3, 10)
        finally:
            session.close()
        job = TopicJob(TopicPlan.of(self.spec, self.ids.topic_id, self.schema), found.dead_letter_marks)
        ranges = {tp.partition: r for tp, r in fetched.ranges.items()}
        batch, _ = process_topic(self.storage, job, fetched.of(self.topic), ranges)
        assert batch is not None
        return batch

    def ingest(self, batch_bytes: int = 1_000_000) -> TopicBatch:
        """One right round."""
        batch = self.read(batch_bytes=batch_bytes)
        assert self.table.commit(batch) is CommitOutcome.COMMITTED
        return batch

    def commit_blindly(self, batch: TopicBatch) -> None:
        """What the real sink never does: a fresh handle, no comparison."""
        self._write(batch.files, [Transaction(self.ids.position(p), r.end) for p, r in batch.ranges.items()])

    def add(self, files: Sequence[FileWritten]) -> None:
        """Rows without a position."""
        self._write(files, [])

    def _write(self, files: Sequence[FileWritten], positions: list[Transaction]) -> None:
        DeltaTable(self.storage.uri(self.spec.table)).create_write_transaction(
            [AddAction(file.path, file.size, {}, 0, True, file.stats) for file in files],
            "append",
            self.schema,
            commit_properties=CommitProperties(app_transactions=positions),
        )

    def file_of(self, *offsets: int) -> FileWritten:
        """Rows of partition 0 that nobody has read, in a file."""
        rows = [{"_topic_id": self.ids.topic_id, "_partition": 0, "_offset": offset} for offset in offsets]
        return write_table(
            self.storage, self.spec.table, pa.Table.from_pylist(rows, self.schema).to_batches(), self.schema
        )

    def commit_positions_only(self, batch: TopicBatch) -> None:
        """As a sink does that is killed between positions and rows."""
        assert self.table.commit(replace(batch, files=(), dead_letters=None)) is CommitOutcome.COMMITTED

    def handle(self) -> DeltaTable:
        return DeltaTable(self.storage.uri(self.spec.table))

    def without_rows_of(self, *offsets: int) -> None:
        """Take rows out of the table by rewriting its files."""
        self.handle().alter.set_table_properties({"delta.appendOnly": "false"})
        self.handle().delete(f"_offset in ({', '.join(map(str, offsets))})")
