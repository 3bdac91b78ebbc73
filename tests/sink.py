"""A sink without Kafka: records that follow from their offsets, through the real parsing, writing and commits."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from kgs_core.config import TableSpec, TopicRule
from kgs_core.config.settings import LakeSettings
from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.ingest.worker.topic_job import TopicJob, TopicPlan
from kgs_core.lake.delta.delta_table import DeltaTopicTable
from kgs_core.lake.delta.pace import CommitWay
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.files.layout import table_schema
from kgs_core.lake.files.row_schema import parsed_schema
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.topic_table import TopicTable
from kgs_core.model import OffsetRange, TopicId
from kgs_core.ports import CommitOutcome
from tests.processing import process_topic

BAD_EVERY = 5
EPOCH_EVERY = 100
Ranges = Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class FakeRecord:
    """What a record would be; every fifth is no JSON."""

    number: int
    at: int

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_700_000_000_000 + self.at

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes | None:
        good = json.dumps({"n": self.number * 1_000_000 + self.at}).encode()
        return b"bad" if bad(self.at) else good

    def __len__(self) -> int:
        return len(self.value() or b"")

    def headers(self) -> list[tuple[str, bytes | str | None]] | None:
        return None

    def set_headers(self, _: object) -> None:
        raise AssertionError("these can be read")

    def leader_epoch(self) -> int | None:
        return self.at // EPOCH_EVERY

    def error(self) -> None:
        return None


class TopicSink:
    """One consumer's hold on the table of one topic; `t`, where nothing else is said."""

    def __init__(
        self,
        storage: Storage,
        *,
        checkpoint_interval: int = 5,
        topic_id: str = "id1",
        group: str = "g",
        commit: CommitWay = "auto",
        topic: str = "t",
        **rule: Any,
    ) -> None:
        self.storage = storage
        self.lake = LakeSettings(
            root=storage.root,
            storage_options=dict(storage.options),
            checkpoint_interval=checkpoint_interval,
        )
        found = TopicRule.model_validate({"topic": topic, "format": "json", **rule})
        table = found.table_of(topic)
        self.spec = TableSpec(topic, table, f"{table}_dead_letters", found)
        self.ids = AppIds(group, topic, TopicId(topic_id))
        schema = table_schema(found, parsed_schema(found))
        self.table = TopicTable(open_lake(self.lake, "7", commit), self.spec, self.ids, schema)

    def plan(self, columns: pa.Schema | None = None) -> TopicPlan:
        """What a worker must know of the topic."""
        return TopicPlan.of(self.spec, self.ids.topic_id, self.table.schema, columns)


class Sink(TopicSink):
    """Of records that follow from their offsets."""

    def __init__(self, storage: Storage, **more: Any) -> None:
        super().__init__(storage, **{"table": "t", "schema": {"n": "long"}, **more})
        self._made_by = {name: value for name, value in more.items() if name not in ("checkpoint_interval", "commit")}

    def started(self, partitions: int) -> "Sink":
        """With the table made and all partitions at 0."""
        self.table.open()
        self.table.fix_start(dict.fromkeys(range(partitions), 0))
        return self

    def read(self, ranges: Ranges, marks: Mapping[int, int | None] | None = None) -> TopicBatch:
        """A batch in files, not committed; dead letters are filtered by the lake's marks unless others are given."""
        if marks is None:
            marks = self.table.positions(set(ranges)).dead_letter_marks
        records = [FakeRecord(p, o) for p, (start, end) in ranges.items() for o in range(start, end)]
        job = TopicJob(self.plan(self.table.columns), marks)
        spans = {p: OffsetRange(*span) for p, span in ranges.items()}
        batch, cuts = process_topic(self.storage, job, records_of(records), spans)
        assert batch is not None
        assert not cuts
        return batch

    def ingest(self, ranges: Ranges) -> CommitOutcome:
        return self.table.commit(self.read(ranges))

    def position(self, partition: int) -> int:
        return self.table.positions({partition}).next_offset[partition]

    def assert_exact(self, partitions: int) -> dict[int, int]:
        """Every offset below a position is one row or one dead letter, and nothing else is there; the positions."""
        fresh = Sink(self.storage, **self._made_by)
        positions = dict(fresh.table.positions(set(range(partitions))).next_offset)
        rows = [(r["_partition"], r["_offset"], r["n"]) for r in fresh.own_rows()]
        dead_letters = [(r["_partition"], r["_offset"]) for r in fresh.own_rows("t_dead_letters")]
        every = [(p, o) for p, end in positions.items() for o in range(end)]
        good = [(p, o, p * 1_000_000 + o) for p, o in every if not bad(o)]
        assert sorted(rows) == good
        assert sorted(x for x in dead_letters if x[1] < positions[x[0]]) == [x for x in every if bad(x[1])]
        assert len(dead_letters) == len(set(dead_letters))
        return positions

    def own_rows(self, table: str = "t") -> list[dict[str, Any]]:
        """Rows of this topic."""
        return [row for row in self.rows(table) if row["_topic_id"] == self.ids.topic_id]

    def rows(self, table: str = "t") -> list[dict[str, Any]]:
        """All rows, read file by file as a foreign reader would."""
        try:
            files = self.files(table)
        except TableNotFoundError:
            return []
        filesystem = self.storage.filesystem()
        parts = [pq.read_table(self.storage.path(table, f), filesystem=filesystem) for f in files]
        names = dict.fromkeys(name for part in parts for name in part.column_names)
        return [{name: row.get(name) for name in names} for part in parts for row in part.to_pylist()]

    def files(self, table: str = "t") -> list[str]:
        """Data files of the newest version, relative to the table."""
        handle = DeltaTable(self.storage.uri(table), storage_options=self.storage.delta_options())
        paths: list[str] = pa.table(handle.get_add_actions())["path"].to_pylist()
        return paths

    def delta(self) -> DeltaTopicTable:
        """The rows' table below the rules for topics."""
        return DeltaTopicTable(TableLog(self.storage, self.spec.table, self.table.schema, self.lake))


def bad(offset: int) -> bool:
    return offset % BAD_EVERY == BAD_EVERY - 1
