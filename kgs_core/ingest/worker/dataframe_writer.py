"""The last part of the dataframe processor's job: the rows that the user's plan makes, into files."""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kgs_core.ingest.worker.arrow_task import TaskContext
from kgs_core.ingest.worker.batch_files import write_routed
from kgs_core.ingest.worker.process_batch import check_origins, check_partitions
from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.lake.files.layout import Partitioned
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.row_schema import IDENTITY
from kgs_core.ports import FileWritten
from kgs_core.system.failpoints import failpoint

NOTE_SCHEMA = pa.schema([("note", pa.binary())])
"""What each task tells: its `WriterNote`, pickled."""


@dataclass(frozen=True, slots=True)
class WriterNote:
    """Note of what the writer has written.

    Attributes:
        files: side table, or the topic's own -> its files.
        rows: how many the transform gave, also those that are in a side table already.
        left: partition -> first offset to be left for a later batch, so that this one has not too many files; None:
            all fits. Otherwise nothing was written.
    """

    files: dict[str, list[FileWritten]]
    rows: int
    left: dict[int, int] | None = None


def notes_of(told: Sequence[Any]) -> list[WriterNote]:
    """The note of each task that had rows: rows of one batch go through one."""
    return [pickle.loads(row.note) for row in told]  # noqa: S301 - from workers of our own


def write_rows(context: TaskContext, job: TopicJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the rows of a batch, in `job.plan.given`; what is told of it is a row of `NOTE_SCHEMA`.

    Raises:
        TransformError: the rows break the transform's promise.
        TransientError: the table did not take a file.
    """
    plan, spec = job.plan, job.plan.spec
    identity: list[pa.Table] = []

    def cast() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch]).cast(plan.given)
            identity.append(table.select(list(IDENTITY)))
            yield from table.to_batches()

    rows = cast()
    first = next((batch for batch in rows if batch.num_rows), None)
    if first is None:
        return
    if spec.rule.partition_by or spec.rule.sort_by or spec.side_tables:
        whole = pa.Table.from_batches(_chain(first, rows), schema=plan.given)
        check_partitions(spec, whole)
        found = Partitioned(spec.rule, whole)
        left = found.cut()
        if left is not None:
            yield _told(WriterNote({}, 0, left))
            return
        own, sides = write_routed(context.storage, job, found)
        files = {spec.table: own, **{table: list(part.files) for table, part in sides.items()}}
    else:
        files = {spec.table: [write_table(context.storage, spec.table, _chain(first, rows), plan.schema)]}
    every = pa.concat_tables(identity)
    check_origins(spec, every)
    failpoint("written", context.crash)
    yield _told(WriterNote(files, every.num_rows))


def _told(note: WriterNote) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"note": pickle.dumps(note)}], schema=NOTE_SCHEMA)


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
