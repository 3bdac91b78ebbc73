"""From records to the files of a batch: parse, set bad records aside, transform, check the promise, write."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from kgs_core.adapters.ingest.formats import json_objects, raw  # noqa: F401 - not in the first batch
from kgs_core.adapters.ingest.formats.parsed import Parsed, Parser, ValueBatch
from kgs_core.adapters.ingest.topic_records import TopicRecords
from kgs_core.adapters.lake.error_codes import with_code
from kgs_core.adapters.lake.parquet_writer import write_table
from kgs_core.adapters.lake.row_schema import DEAD_LETTER_SCHEMA, IDENTITY, value_schema
from kgs_core.adapters.lake.storage import Storage
from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.config.value_formats import FORMATS
from kgs_core.exactly_once.batch import TopicBatch
from kgs_core.model import OffsetRange, TopicId
from kgs_core.ports import FileWritten


@dataclass(frozen=True, slots=True)
class TopicJob:
    """Job of a worker on one topic. Picklable.

    Attributes:
        table: path under the lake's root; `dead_letters_table` likewise.
        schema: the table's columns, after the transform.
        dead_letter_marks: partition -> offset below which dead letters are in the lake already; None where there are
            none.
        leader_epochs: partition -> leader epoch of the record before its position; for the dataframe processor.
        columns: what a value becomes, before the transform; None: as the rule says.
        registry: where the schemas of values are.
    """

    topic: str
    topic_id: TopicId
    rule: TopicRule
    table: str
    dead_letters_table: str
    schema: pa.Schema
    dead_letter_marks: Mapping[int, int | None]
    leader_epochs: Mapping[int, int] = field(default_factory=dict)
    columns: pa.Schema | None = None
    registry: RegistrySettings | None = None


class TransformError(Exception):
    """The user's transform raised, or gave rows that its promise does not allow."""


@dataclass(slots=True)
class Sorted:
    """Records of one topic, the good ones as rows and the bad ones apart.

    Attributes:
        rows: value columns and origin columns of the good records.
        dead_letters: the bad ones that are not in the lake yet, in the columns of a dead-letter table.
        bad: how many are bad, whether their dead letters are new or not.
        stopped: partition -> (offset, reason) of the first bad record, where bad records stop the partition; such a
            record and what lies behind it is neither a row nor a dead letter.
    """

    rows: pa.Table
    dead_letters: pa.Table
    bad: int
    stopped: dict[int, tuple[int, str]]


def sort_records(job: TopicJob, records: TopicRecords) -> Sorted:
    """Parse records; what comes of a record depends on that record alone."""
    parsed = parse_values(job, records)
    origin = records.with_topic(job.topic_id)
    bad = {**parsed.bad, **records.faults}  # what no column took is lost in the dead letter, whatever its value was
    stopped: dict[int, tuple[int, str]] = {}
    if bad and job.rule.on_error == "stop":
        last_first = sorted(bad, reverse=True)
        for i, (partition, offset) in zip(last_first, records.places(last_first), strict=True):
            stopped[partition] = (offset, bad[i])
        bad = {}
    rows, good = parsed.table, parsed.good
    if stopped or records.faults:
        places = records.places(good)
        keep = [n for n, i in enumerate(good) if i not in records.faults and not _is_stopped(places[n], stopped)]
        rows, good = rows.take(pa.array(keep, pa.int64())), [good[n] for n in keep]
    chosen = origin if len(good) == len(records) else origin.take(pa.array(good, pa.int64()))
    columns = pa.schema([*rows.schema, *chosen.schema])
    rows = pa.Table.from_arrays([*rows.columns, *chosen.columns], schema=columns)
    return Sorted(rows, _dead_letters(job, records, bad, origin), len(bad), stopped)


def parse_values(job: TopicJob, records: TopicRecords) -> Parsed:
    """What the parser of the rule's format makes of the values."""
    parse: Parser = load_hook(FORMATS[job.rule.format].parser)
    headers = records.origin["_headers"].combine_chunks()
    columns = value_schema(job.rule) if job.columns is None else job.columns
    return parse(ValueBatch(records.values, columns, job.topic, job.rule, headers, job.registry))


def _is_stopped(at: tuple[int, int], stopped: Mapping[int, tuple[int, str]]) -> bool:
    partition, offset = at
    first = stopped.get(partition)
    return first is not None and offset >= first[0]


def _dead_letters(job: TopicJob, records: TopicRecords, bad: Mapping[int, str], origin: pa.Table) -> pa.Table:
    if not bad:
        return DEAD_LETTER_SCHEMA.empty_table()
    places = zip(sorted(bad), records.places(sorted(bad)), strict=True)
    new = [i for i, (partition, offset) in places if offset >= (job.dead_letter_marks.get(partition) or 0)]
    if not new:
        return DEAD_LETTER_SCHEMA.empty_table()
    which = pa.array(new, pa.int64())
    columns = [records.values.take(which), pa.array([with_code(bad[i]) for i in new], pa.string())]
    return pa.Table.from_arrays([*columns, *origin.take(which).columns], schema=DEAD_LETTER_SCHEMA)


@dataclass(frozen=True, slots=True)
class UnwrittenBatch:
    """A batch whose rows and dead letters are in no files yet.

    Attributes:
        job: what is known of its topic.
        batch: all but the files.
        rows: in the table's columns.
        dead_letters: in those of a dead-letter table.
    """

    job: TopicJob
    batch: TopicBatch
    rows: pa.Table
    dead_letters: pa.Table

    def written(self, storage: Storage) -> TopicBatch:
        """The batch with its files. May be called by any thread: no code of the user's runs in it.

        Raises:
            TransientError: the table did not take a file.
        """
        job, rows = self.job, self.rows
        file = write_table(storage, job.table, rows.to_batches(), job.schema) if rows.num_rows else None
        return replace(self.batch, file=file, dead_letters=write_dead_letters(storage, job, self.dead_letters))


def prepare_topic(
    job: TopicJob, records: TopicRecords, ranges: Mapping[int, OffsetRange]
) -> tuple[UnwrittenBatch | None, dict[int, tuple[int, str]]]:
    """The arrow processor: rows and dead letters of one topic.

    Returns:
        The batch (None when a bad record stands at the very start of all that was read), and the partitions that
        must stop, each with the offset of its bad record and the reason.

    Raises:
        TransformError: the transform raised or broke its promise.
    """
    found = sort_records(job, records)
    ranges = ranges_to_read(ranges, found.stopped)
    if not ranges:
        return None, found.stopped
    batch = TopicBatch(
        topic=job.topic,
        topic_id=job.topic_id,
        ranges=ranges,
        file=None,
        dead_letter_marks=job.dead_letter_marks,
        records=len(records),
        consumed_bytes=records.consumed_bytes,
        oldest_ms=records.oldest_ms,
        bad_records=found.bad,
        leader_epochs=records.leader_epochs(ranges),
    )
    rows = transform_arrow(job, found.rows) if found.rows.num_rows else found.rows
    return UnwrittenBatch(job, batch, rows, found.dead_letters), found.stopped


def process_topic(
    storage: Storage, job: TopicJob, records: TopicRecords, ranges: Mapping[int, OffsetRange]
) -> tuple[TopicBatch | None, dict[int, tuple[int, str]]]:
    """As `prepare_topic`, and written.

    Raises:
        TransformError: the transform raised or broke its promise.
        TransientError: the table did not take a file.
    """
    unwritten, stopped = prepare_topic(job, records, ranges)
    return unwritten.written(storage) if unwritten is not None else None, stopped


def ranges_to_read(ranges: Mapping[int, OffsetRange], stopped: Mapping[int, tuple[int, str]]) -> dict[int, OffsetRange]:
    """The ranges without what lies at or behind a bad record that stops its partition."""
    shorter = {p: r._replace(end=min(r.end, stopped[p][0])) if p in stopped else r for p, r in ranges.items()}
    return {p: r for p, r in shorter.items() if r.end > r.start}


def write_dead_letters(storage: Storage, job: TopicJob, dead_letters: pa.Table) -> FileWritten | None:
    """The dead letters in a file of the dead-letter table; None when there are none."""
    if not dead_letters.num_rows:
        return None
    return write_table(storage, job.dead_letters_table, dead_letters.to_batches(), DEAD_LETTER_SCHEMA)


def transform_arrow(job: TopicJob, rows: pa.Table) -> pa.Table:
    """Rows after the user's `transform_arrow`, in the table's columns.

    Raises:
        TransformError: it raised, lost the origin columns, or broke its promise.
    """
    if job.rule.transform_arrow is None:
        return rows.combine_chunks()
    try:
        out = load_hook(job.rule.transform_arrow)(rows, job.topic)
        out = out.select(job.schema.names).cast(job.schema).combine_chunks()
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


def load_hook(name: str) -> Callable[..., Any]:
    """The function that `module:function` names.

    Raises:
        ImportError, AttributeError: there is none.
    """
    module, _, function = name.partition(":")
    hook: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return hook
