"""The files of a batch: one for each of its partition values, in each table that a route leads to."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pyarrow as pa

from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.lake.files.layout import Partitioned
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.batch import SidePart
from kgs_core.lake.topics.routing import routed, unwritten
from kgs_core.ports import FileWritten
from kgs_core.system.failpoints import failpoint

SIDE_BY_SIDE = 16
"""Files of partition values on their way to an object store, of all topics."""


def write_files(storage: Storage, table: str, in_file: pa.Schema, rows: Partitioned) -> list[FileWritten]:
    """One file for each of the partition values, side by side where the store is far away.

    Raises:
        TransientError: the table did not take one. What is written of the others, vacuum takes.
    """

    def write(part: tuple[Mapping[str, str | None], pa.Table]) -> FileWritten:
        values, found = part
        file = write_table(storage, table, found.to_batches(), in_file, values)
        failpoint("file-written")
        return file

    parts = rows.files()
    if len(parts) == 1 or not storage.is_in_objects:
        return [write(part) for part in parts]
    return list(_writers().map(write, parts))


def write_routed(storage: Storage, job: TopicJob, rows: Partitioned) -> tuple[list[FileWritten], dict[str, SidePart]]:
    """Files of the topic's own table, and the parts of side tables, of what is not there yet.

    Raises:
        TransientError: a table did not take a file.
    """
    spec, in_file = job.plan.spec, job.plan.in_file
    if not spec.side_tables:
        return write_files(storage, spec.table, in_file, rows), {}
    own, sides = routed(spec.rule, spec.side_tables, rows.rows)
    parts = {}
    for table, found in sides.items():
        marks = job.side_marks.get(table, {})
        new = unwritten(found, marks)
        if new.num_rows:
            files = write_files(storage, table, in_file, Partitioned(spec.rule, new))
            parts[table] = SidePart(files, marks)
    return write_files(storage, spec.table, in_file, Partitioned(spec.rule, own)), parts


@cache
def _writers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(SIDE_BY_SIDE, "files-of-a-batch")
