"""The last part of the dataframe processor's job: the rows that the user's plan makes, into files."""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kgs_core.ingest.worker.arrow_task import TaskContext
from kgs_core.ingest.worker.batch_files import write_routed
from kgs_core.ingest.worker.process_batch import check_rows
from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.lake.files.layout import Partitioned
from kgs_core.lake.rule.batch import SidePart
from kgs_core.ports import FileWritten
from kgs_core.system.failpoints import failpoint

NOTE_SCHEMA = pa.schema([("note", pa.binary())])
"""What each task tells: its `WriterNote`, pickled."""


@dataclass(frozen=True, slots=True)
class WriterNote:
    """Note of what the writer has written.

    Attributes:
        files: of the topic's own table.
        sides: as in `TopicBatch`.
        rows: how many the transform gave, also those that are in a side table already.
        left: partition -> first offset to be left for a later batch, so that this one has not too many files; None:
            all fits. Otherwise nothing was written.
    """

    files: Sequence[FileWritten] = ()
    sides: Mapping[str, SidePart] = field(default_factory=dict)
    rows: int = 0
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
    spec, found = job.plan.spec, [batch for batch in batches if batch.num_rows]
    if not found:
        return
    whole = pa.Table.from_batches(found).cast(job.plan.given)
    check_rows(spec, whole)
    rows = Partitioned(spec.rule, whole)
    if (left := rows.cut()) is not None:
        note = WriterNote(left=left)
    else:
        note = WriterNote(*write_routed(context.storage, job, rows), whole.num_rows)
        failpoint("written", context.crash)
    yield pa.RecordBatch.from_pylist([{"note": pickle.dumps(note)}], schema=NOTE_SCHEMA)
