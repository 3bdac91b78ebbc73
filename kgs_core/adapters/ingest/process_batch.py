"""From records to the files of a batch: parse, set bad records aside, transform, check the promise, write."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from kgs_core.adapters.ingest.batch_files import write_routed
from kgs_core.adapters.ingest.earlier_reading import earlier_reading
from kgs_core.adapters.ingest.sorted_records import (
    Cuts,
    EarlierReading,
    MoreColumnsError,
    TopicJob,
    load_hook,
    more_columns,
    sort_records,
)
from kgs_core.adapters.ingest.topic_records import TopicRecords
from kgs_core.adapters.lake.layout import Partitioned
from kgs_core.adapters.lake.parquet_writer import write_table
from kgs_core.adapters.lake.row_schema import DEAD_LETTER_SCHEMA, IDENTITY
from kgs_core.adapters.lake.storage import Storage
from kgs_core.exactly_once.batch import TopicBatch
from kgs_core.model import OffsetRange
from kgs_core.ports import FileWritten


class TransformError(Exception):
    """The user's transform raised, or gave rows that its promise does not allow."""


@dataclass(frozen=True, slots=True)
class UnwrittenBatch:
    """A batch whose rows and dead letters are in no files yet.

    Attributes:
        job: what is known of its topic.
        batch: all but the files.
        rows: in the columns that the job is given, with their partition values.
        dead_letters: in those of a dead-letter table.
    """

    job: TopicJob
    batch: TopicBatch
    rows: Partitioned
    dead_letters: pa.Table

    def written(self, storage: Storage) -> TopicBatch:
        """The batch with its files. May be called by any thread: no code of the user's runs in it.

        Raises:
            TransientError: the table did not take a file.
        """
        job = self.job
        files, sides = write_routed(storage, job, self.rows)
        dead_letters = write_dead_letters(storage, job, self.dead_letters)
        return replace(self.batch, files=files, sides=sides, dead_letters=dead_letters)


def prepare_topic(
    storage: Storage, job: TopicJob, records: TopicRecords, ranges: Mapping[int, OffsetRange]
) -> tuple[UnwrittenBatch | None, Cuts]:
    """The arrow processor: rows and dead letters of one topic.

    Returns:
        The batch (None when such a record stands at the very start of all that was read), and the records that the
        partitions are read up to.

    Raises:
        MoreColumnsError: nothing was made of the records: first the table is to be given more columns.
        TransformError: the transform raised or broke its promise.
        TransientError: the dead letters that are there already could not be read.
    """
    earlier = earlier_reading(storage, job, ranges)
    while True:
        unwritten, cuts = _prepared(job, records, ranges, earlier)
        left = unwritten.rows.cut(job.rule.max_files_per_batch) if unwritten is not None else None
        if unwritten is None or left is None:
            return unwritten, cuts
        # Once more with fewer records, from the parser on: a transform may have made its rows of those left out, too
        records, ranges = records.before(left), ranges_before(ranges, left)


def _prepared(
    job: TopicJob, records: TopicRecords, ranges: Mapping[int, OffsetRange], earlier: EarlierReading
) -> tuple[UnwrittenBatch | None, Cuts]:
    found = sort_records(job, records, earlier)
    if more := more_columns(job, found.missing):
        raise MoreColumnsError(pa.schema(more))
    ranges = ranges_to_read(ranges, found.cuts)
    if not ranges:
        return None, found.cuts
    batch = TopicBatch(
        topic=job.topic,
        topic_id=job.topic_id,
        ranges=ranges,
        files=(),
        dead_letter_marks=job.dead_letter_marks,
        records=len(records),
        consumed_bytes=records.consumed_bytes,
        oldest_ms=records.oldest_ms,
        bad_records=found.bad,
        leader_epochs=records.leader_epochs(ranges),
        unsettled=found.unsettled,
    )
    rows = transform_arrow(job, found.rows) if found.rows.num_rows else found.rows
    return UnwrittenBatch(job, batch, partitioned(job, rows), found.dead_letters), found.cuts


def ranges_to_read(ranges: Mapping[int, OffsetRange], cuts: Cuts) -> dict[int, OffsetRange]:
    """The ranges without what lies at or behind a record that its partition is read up to."""
    ends = cuts.by_partition
    shorter = {p: r._replace(end=min(r.end, ends[p][0])) if p in ends else r for p, r in ranges.items()}
    return {p: r for p, r in shorter.items() if r.end > r.start}


def ranges_before(ranges: Mapping[int, OffsetRange], left: Mapping[int, int]) -> dict[int, OffsetRange]:
    """The ranges without what is left for a later batch: partition -> its first offset."""
    shorter = {p: r._replace(end=min(r.end, left.get(p, r.end))) for p, r in ranges.items()}
    return {p: r for p, r in shorter.items() if r.end > r.start}


def partitioned(job: TopicJob, rows: pa.Table) -> Partitioned:
    """The rows with their partition values.

    Raises:
        TransformError: one has none that the table could take; a value of a record itself always can.
    """
    try:
        return Partitioned(job.rule, rows)
    except ValueError as e:
        raise TransformError(f"topic {job.topic}: {e}") from e


def write_dead_letters(storage: Storage, job: TopicJob, dead_letters: pa.Table) -> FileWritten | None:
    """The dead letters in a file of the dead-letter table; None when there are none."""
    if not dead_letters.num_rows:
        return None
    batches = dead_letters.to_batches()
    return write_table(storage, job.dead_letters_table, batches, DEAD_LETTER_SCHEMA, beside=job.table)


def transform_arrow(job: TopicJob, rows: pa.Table) -> pa.Table:
    """Rows after the user's `transform_arrow`, in the table's columns.

    Raises:
        TransformError: it raised, lost the origin columns, or broke its promise.
    """
    if job.rule.transform_arrow is None:
        return rows.combine_chunks()
    try:
        out = load_hook(job.rule.transform_arrow)(rows, job.topic)
        out = out.select(job.given.names).cast(job.given).combine_chunks()
    except (Exception, SystemExit) as e:  # one that ends the process would take the other topics with it
        raise TransformError(f"transform_arrow {job.rule.transform_arrow}: {type(e).__name__}: {e}") from e
    check_promise(job, out, rows.num_rows)
    return out


def check_promise(job: TopicJob, out: pa.Table, rows_in: int) -> None:
    """Whether the transform kept `rows: ...`; only IDENTITY columns of `out` are looked at.

    Raises:
        TransformError: it did not.
    """
    promise, rows = job.rule.rows, out.num_rows
    if any(out.column(name).null_count for name in IDENTITY):
        raise TransformError(f"the transform of {job.topic} left nulls in {', '.join(IDENTITY)}")
    if promise == "any":
        return
    pairs = out.select(["_partition", "_offset"]).group_by(["_partition", "_offset"]).aggregate([])
    if pairs.num_rows != rows:
        raise TransformError(f"the transform of {job.topic} gives several rows for one record: say rows: any")
    if rows > rows_in or (promise == "one_to_one" and rows != rows_in):
        raise TransformError(
            f"the transform of {job.topic} gives {rows} rows for {rows_in} records against rows: {promise}"
        )
