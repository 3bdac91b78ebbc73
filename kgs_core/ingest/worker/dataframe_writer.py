"""The last part of the dataframe processor's job: the rows that the user's plan makes, into files."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa

from kgs_core.ingest.worker.arrow_task import TaskContext
from kgs_core.ingest.worker.batch_files import write_routed
from kgs_core.ingest.worker.process_batch import check_origins, partitioned
from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.row_schema import IDENTITY
from kgs_core.ports import FileWritten
from kgs_core.system.failpoints import failpoint

FILE_SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("table", pa.string()),
        ("given", pa.int64()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("stats", pa.string()),
        ("values", pa.string()),
        ("left", pa.string()),
    ]
)
"""What the writer tells: how many rows it was given; a file, its partition values as JSON; or, in one row, where it
would have the ranges end."""


@dataclass(frozen=True, slots=True)
class WriterNote:
    """Note of what the writer has written.

    Attributes:
        files: side table, or the topic's own -> its files.
        tasks: how many tasks wrote; rows of one batch go through one.
        rows: how many the transform gave, also those that are in a side table already.
        left: partition -> first offset to be left for a later batch, so that this one has not too many files; None:
            all fits. Otherwise nothing was written.
    """

    files: dict[str, list[FileWritten]]
    tasks: int
    rows: int
    left: dict[int, int] | None


def note_of(rows: Sequence[Any]) -> WriterNote:
    """The note of the rows that the writer gave."""
    left = next((row.left for row in rows if row.left is not None), None)
    files: dict[str, list[FileWritten]] = {}
    for row in rows:
        if row.path is not None:
            file = FileWritten(row.path, row.size, row.rows, row.stats, json.loads(row["values"]))
            files.setdefault(row.table, []).append(file)
    ends = None if left is None else {int(partition): int(offset) for partition, offset in json.loads(left).items()}
    return WriterNote(files, len({row.task for row in rows}), sum(row.given or 0 for row in rows), ends)


def write_rows(context: TaskContext, job: TopicJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the rows of a batch, in `job.plan.given`; what is told of it are rows of `FILE_SCHEMA`."""
    identity: list[pa.Table] = []

    def cast() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch]).cast(job.plan.given)
            identity.append(table.select(list(IDENTITY)))
            yield from table.to_batches()

    rows = cast()
    first = next((batch for batch in rows if batch.num_rows), None)
    if first is None:
        return
    if job.rule.partition_by or job.rule.sort_by or job.sides:
        found = partitioned(job, pa.Table.from_batches(_chain(first, rows), schema=job.plan.given))
        left = found.cut(job.rule.max_files_per_batch)
        if left is not None:
            yield pa.RecordBatch.from_pylist([{"left": json.dumps(left)}], schema=FILE_SCHEMA)
            return
        own, sides = write_routed(context.storage, job, found)
        files = {job.table: own, **{table: part.files for table, part in sides.items()}}
    else:
        files = {job.table: [write_table(context.storage, job.table, _chain(first, rows), job.schema)]}
    every = pa.concat_tables(identity)
    check_origins(job, every)
    failpoint("written", context.crash)
    task = uuid4().hex
    told = [{"task": task, "given": every.num_rows}]
    told += [{"task": task, "table": table, **_told_of(file)} for table, each in files.items() for file in each]
    yield pa.RecordBatch.from_pylist(told, schema=FILE_SCHEMA)


def _told_of(file: FileWritten) -> dict[str, Any]:
    values = json.dumps(dict(file.partition_values))
    return {"path": file.path, "size": file.size, "rows": file.rows, "stats": file.stats, "values": values}


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
