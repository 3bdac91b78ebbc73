"""The files of a batch: one for each of its partition values, in each table that a route leads to; its dead letters."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import pyarrow as pa

from kgs_core.config import TableSpec
from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.worker.sorted_records import Cut, Sorted
from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.lake.files.layout import Partitioned
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.row_schema import DEAD_LETTER_SCHEMA
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.batch import SidePart, TopicBatch
from kgs_core.lake.topics.routing import routed, unwritten
from kgs_core.model import TopicPartition
from kgs_core.ports import FileWritten
from kgs_core.system.failpoints import failpoint

SIDE_BY_SIDE = 16
"""Files of partition values on their way to an object store, of all topics."""


def write_batch(storage: Storage, job: TopicJob, found: Sorted, rows: Partitioned) -> ReadResult:
    """What is told of a topic, with its files. May be called by any thread: no code of the user's runs in it.

    Raises:
        TransientError: a table did not take a file.
    """
    files, sides = write_routed(storage, job, rows)
    dead_letters = write_dead_letters(storage, job.plan.spec, found.dead_letters)
    return told(replace(found.batch, files=files, sides=sides, dead_letters=dead_letters), found.cuts)


def told(batch: TopicBatch, cuts: Mapping[int, Cut]) -> ReadResult:
    """What is told of one topic: its batch, unless no range keeps a record, and where its partitions stop."""
    result = ReadResult([batch] if batch.ranges else [])
    for partition, cut in cuts.items():
        ends = result.waiting if cut.waits else result.stopped
        ends[TopicPartition(batch.topic, partition)] = cut.offset, cut.reason
    return result


def write_dead_letters(storage: Storage, spec: TableSpec, dead_letters: pa.Table) -> FileWritten | None:
    """The dead letters in a file of the dead-letter table; None when there are none."""
    if not dead_letters.num_rows:
        return None
    batches = dead_letters.to_batches()
    return write_table(storage, spec.dead_letters_table, batches, DEAD_LETTER_SCHEMA, beside=spec.table)


def write_routed(storage: Storage, job: TopicJob, rows: Partitioned) -> tuple[list[FileWritten], dict[str, SidePart]]:
    """Files of the topic's own table, and the parts of side tables, of what is not there yet.

    Raises:
        TransientError: a table did not take a file.
    """
    spec, parts = job.plan.spec, {}
    own, sides = routed(spec.rule, spec.side_tables, rows.rows)
    for table, found in sides.items():
        marks = job.side_marks.get(table, {})
        new = unwritten(found, marks)
        if new.num_rows:
            parts[table] = SidePart(write_files(storage, table, Partitioned(spec.rule, new)), marks)
    return write_files(storage, spec.table, Partitioned(spec.rule, own) if sides else rows), parts


def write_files(storage: Storage, table: str, rows: Partitioned) -> list[FileWritten]:
    """One file for each of the partition values, side by side where the store is far away.

    Raises:
        TransientError: the table did not take one. What is written of the others, vacuum takes.
    """

    def write(part: tuple[Mapping[str, str | None], pa.Table]) -> FileWritten:
        values, found = part
        file = write_table(storage, table, found.to_batches(), found.schema, values)
        failpoint("file-written")
        return file

    parts = rows.files()
    if len(parts) == 1 or not storage.is_in_objects:
        return [write(part) for part in parts]
    return list(_writers().map(write, parts))


@cache
def _writers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(SIDE_BY_SIDE, "files-of-a-batch")
