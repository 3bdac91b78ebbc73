"""A sink whose rule has a layout: records as they are given, through the real parsing, writing and commits."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.batch import TablePositions, TopicBatch
from kgs_core.model import OffsetRange
from kgs_core.ports import CommitOutcome
from tests.processing import process_topic
from tests.sink import FakeRecord, TopicSink

NOON = 1_769_860_800_000
"""2026-01-31T12:00:00Z in ms."""
COLUMNS = {"s": "string", "i": "int", "b": "boolean", "d": "date", "t": "timestamp", "x": "double"}
Log = Mapping[int, Sequence[Mapping[str, Any]]]
"""Kafka's partition -> the values of its records."""


@dataclass(frozen=True)
class GivenRecord(FakeRecord):
    """A record with this value; every hour of its time is one offset."""

    given: Mapping[str, Any] = field(default_factory=dict)

    def value(self) -> bytes | None:
        return json.dumps(self.given).encode()

    def timestamp(self) -> tuple[int, int]:
        return 1, NOON + self.at * 3_600_000


class LayoutSink(TopicSink):
    """Of records as they are given."""

    def __init__(self, root: Path | str, log: Log, storage: Storage | None = None, **more: Any) -> None:
        super().__init__(storage or Storage(str(root)), **{"schema": COLUMNS, **more})
        self.log = log

    def started(self) -> "LayoutSink":
        self.table.open()
        self.table.fix_start(dict.fromkeys(self.log, 0))
        return self

    def read(self, most: int = 1_000_000) -> TopicBatch | None:
        """At most so many records of each partition, from the table's positions on; None at the end."""
        found = self.table.positions(set(self.log))
        return self.read_from(found, dict.fromkeys(self.log, most))

    def read_from(self, found: TablePositions, most: Mapping[int, int]) -> TopicBatch | None:
        """At most so many records of each of these partitions, from positions that were read before."""
        ends = {p: min(found.next_offset[p] + n, len(self.log[p])) for p, n in most.items()}
        ranges = {p: OffsetRange(found.next_offset[p], end) for p, end in ends.items() if end > found.next_offset[p]}
        if not ranges:
            return None
        records = [GivenRecord(p, o, self.log[p][o]) for p, span in ranges.items() for o in range(span.start, span.end)]
        batch, _ = process_topic(self.storage, self.job(found), records_of(records), ranges)
        assert batch is not None
        return batch

    def job(self, found: TablePositions) -> TopicJob:
        """What a worker must know at these positions."""
        return TopicJob(self.plan(), found.dead_letter_marks, side_marks=found.side_marks)

    def drain(self, most: int = 1_000_000) -> list[TopicBatch]:
        """Read and commit until nothing is left."""
        batches = []
        while (batch := self.read(most)) is not None:
            assert self.table.commit(batch) is CommitOutcome.COMMITTED
            batches.append(batch)
        return batches

    def rows(self, table: str = "t") -> list[dict[str, Any]]:
        frame = pl.read_delta(self.storage.uri(table), storage_options=self.storage.delta_options())
        return frame.sort("_partition", "_offset").drop("_headers").to_dicts()

    def expected(self) -> list[tuple[int, int]]:
        return [(p, o) for p in sorted(self.log) for o in range(len(self.log[p]))]

    def entries(self) -> list[dict[str, Any]]:
        """Every action of the table's log."""
        paths = sorted(Path(self.storage.uri("t"), "_delta_log").glob("*.json"))
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]

    def adds(self) -> list[dict[str, Any]]:
        return [action["add"] for action in self.entries() if "add" in action]
