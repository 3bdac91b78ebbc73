"""From records to the files of a batch: parse, set bad records aside, transform, check the promise, write."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from kgs_core.adapters.ingest.batch_files import write_files
from kgs_core.adapters.ingest.formats import json_objects, raw, texts  # noqa: F401 - not in the first batch
from kgs_core.adapters.ingest.formats.parsed import NO_COLUMNS, Parsed, Parser, ValueBatch
from kgs_core.adapters.ingest.formats.record_columns import header_columns, parse_keys, side_by_side, with_rescued
from kgs_core.adapters.ingest.topic_records import TopicRecords
from kgs_core.adapters.lake.columns import lacking
from kgs_core.adapters.lake.layout import Partitioned, given_schema, unfit
from kgs_core.adapters.lake.parquet_writer import write_table
from kgs_core.adapters.lake.row_schema import DEAD_LETTER_SCHEMA, IDENTITY, schema_of, value_schema
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
        schema: the table's columns: those after the transform, and those that the layout computes.
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

    @property
    def given(self) -> pa.Schema:
        """The columns that come out of the transform."""
        return given_schema(self.rule, self.schema)


class MoreColumnsError(Exception):
    """Good values have columns that their table lacks and may be given.

    Attributes:
        columns: what it lacks.
    """

    def __init__(self, columns: pa.Schema) -> None:
        super().__init__(f"columns {', '.join(columns.names)}")
        self.columns = columns


class TransformError(Exception):
    """The user's transform raised, or gave rows that its promise does not allow."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """Records that partitions are read up to: such a record and what lies behind it is neither row nor dead letter.

    Attributes:
        stopped: partition -> (offset, reason) of the first bad record, where bad records stop the partition.
        waiting: partition -> (offset, reason) of the first record that cannot be judged yet. No partition is in both.
    """

    stopped: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    waiting: Mapping[int, tuple[int, str]] = field(default_factory=dict)

    @property
    def by_partition(self) -> Mapping[int, tuple[int, str]]:
        """Offset and reason of each."""
        return {**self.stopped, **self.waiting}

    def with_others(self, others: "Cuts") -> "Cuts":
        """These, and those of other partitions."""
        return Cuts({**self.stopped, **others.stopped}, {**self.waiting, **others.waiting})


@dataclass(slots=True)
class Sorted:
    """Records of one topic, the good ones as rows and the bad ones apart.

    Attributes:
        rows: value columns and origin columns of the good records.
        dead_letters: the bad ones that are not in the lake yet, in the columns of a dead-letter table.
        bad: how many are bad, whether their dead letters are new or not.
        cuts: what partitions are read up to.
        missing: columns that values have and the job's columns lack.
    """

    rows: pa.Table
    dead_letters: pa.Table
    bad: int
    cuts: Cuts
    missing: pa.Schema = NO_COLUMNS


def sort_records(job: TopicJob, records: TopicRecords) -> Sorted:
    """Parse records; what comes of a record depends on that record alone, and on whether a registry answers."""
    parsed = _without_unfit(job, parse_records(job, records))
    origin = records.with_topic(job.topic_id)
    bad = {**records.faults, **parsed.bad}
    cuts = _cuts(job, records, bad, {i: why for i, why in parsed.waiting.items() if i not in bad})
    if job.rule.on_error == "stop":
        bad = {}
    rows, good, ends = parsed.table, parsed.good, cuts.by_partition
    if ends:
        at = zip(bad, records.places(list(bad)), strict=True)
        before = {i for i, place in at if not _is_behind(place, ends)}
        bad = {i: why for i, why in bad.items() if i in before}
    if ends or records.faults:
        places = records.places(good)
        keep = [n for n, i in enumerate(good) if i not in records.faults and not _is_behind(places[n], ends)]
        rows, good = rows.take(pa.array(keep, pa.int64())), [good[n] for n in keep]
    chosen = origin if len(good) == len(records) else origin.take(pa.array(good, pa.int64()))
    columns = pa.schema([*rows.schema, *chosen.schema])
    rows = pa.Table.from_arrays([*rows.columns, *chosen.columns], schema=columns)
    return Sorted(rows, _dead_letters(job, records, bad, origin), len(bad), cuts, parsed.missing)


def _cuts(job: TopicJob, records: TopicRecords, bad: Mapping[int, str], waiting: Mapping[int, str]) -> Cuts:
    stopped = _first(records, bad) if job.rule.on_error == "stop" else {}
    later = _first(records, waiting)
    return Cuts(
        {p: at for p, at in stopped.items() if p not in later or at < later[p]},
        {p: at for p, at in later.items() if p not in stopped or at < stopped[p]},
    )


def _first(records: TopicRecords, reasons: Mapping[int, str]) -> dict[int, tuple[int, str]]:
    """Partition -> offset and reason of the first of these records."""
    last_first = sorted(reasons, reverse=True)
    places = zip(last_first, records.places(last_first), strict=True)
    return {partition: (offset, reasons[i]) for i, (partition, offset) in places}


def parse_records(job: TopicJob, records: TopicRecords) -> Parsed:
    """What becomes of values, keys and headers, side by side, as the rule says."""
    rule, headers = job.rule, records.origin["_headers"].combine_chunks()
    columns = value_schema(rule) if job.columns is None else job.columns
    rescue = rule.unknown_fields == "rescue"
    values = ValueBatch(records.values, columns, job.topic, rule, headers, job.registry, rescue=rescue)
    parts = [with_rescued(_parser(rule.format)(values), wanted=rescue)]
    if rule.key_columns:
        columns = schema_of(FORMATS[rule.key_format].columns or rule.key_fields)
        keys = records.origin["_key"].combine_chunks()
        batch = ValueBatch(keys, columns, job.topic, rule, headers, job.registry, is_key=True)
        parts.append(parse_keys(_parser(rule.key_format), batch, list(rule.key_columns)))
    if rule.headers:
        parts.append(header_columns(headers, rule.headers))
    return side_by_side(parts)


def _parser(name: str) -> Parser:
    parser: Parser = load_hook(FORMATS[name].parser)
    return parser


def _without_unfit(job: TopicJob, parsed: Parsed) -> Parsed:
    """Values that no partition can have are bad, where they are the record's own and not a transform's."""
    if job.rule.transform or job.rule.transform_arrow or not (bad := unfit(job.rule, parsed.table)):
        return parsed
    keep = [n for n in range(len(parsed.good)) if n not in bad]
    good = [parsed.good[n] for n in keep]
    reasons = {**parsed.bad, **{parsed.good[n]: reason for n, reason in bad.items()}}
    return replace(parsed, table=parsed.table.take(pa.array(keep, pa.int64())), good=good, bad=reasons)


def _is_behind(at: tuple[int, int], ends: Mapping[int, tuple[int, str]]) -> bool:
    partition, offset = at
    end = ends.get(partition)
    return end is not None and offset >= end[0]


def _dead_letters(job: TopicJob, records: TopicRecords, bad: Mapping[int, str], origin: pa.Table) -> pa.Table:
    if not bad:
        return DEAD_LETTER_SCHEMA.empty_table()
    places = zip(sorted(bad), records.places(sorted(bad)), strict=True)
    new = [i for i, (partition, offset) in places if offset >= (job.dead_letter_marks.get(partition) or 0)]
    if not new:
        return DEAD_LETTER_SCHEMA.empty_table()
    which = pa.array(new, pa.int64())
    columns = [records.values.take(which), pa.array([bad[i] for i in new], pa.string())]
    return pa.Table.from_arrays([*columns, *origin.take(which).columns], schema=DEAD_LETTER_SCHEMA)


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
        files = write_files(storage, job.table, job.rule, job.schema, self.rows)
        return replace(self.batch, files=files, dead_letters=write_dead_letters(storage, job, self.dead_letters))


def prepare_topic(
    job: TopicJob, records: TopicRecords, ranges: Mapping[int, OffsetRange]
) -> tuple[UnwrittenBatch | None, Cuts]:
    """The arrow processor: rows and dead letters of one topic.

    Returns:
        The batch (None when such a record stands at the very start of all that was read), and the records that the
        partitions are read up to.

    Raises:
        MoreColumnsError: nothing was made of the records: first the table is to be given more columns.
        TransformError: the transform raised or broke its promise.
    """
    while True:
        unwritten, cuts = _prepared(job, records, ranges)
        left = unwritten.rows.cut(job.rule.max_files_per_batch) if unwritten is not None else None
        if unwritten is None or left is None:
            return unwritten, cuts
        # Once more with fewer records, from the parser on: a transform may have made its rows of those left out, too
        records, ranges = records.before(left), ranges_before(ranges, left)


def _prepared(
    job: TopicJob, records: TopicRecords, ranges: Mapping[int, OffsetRange]
) -> tuple[UnwrittenBatch | None, Cuts]:
    found = sort_records(job, records)
    if more := _more_columns(job, found.missing):
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
    )
    rows = transform_arrow(job, found.rows) if found.rows.num_rows else found.rows
    return UnwrittenBatch(job, batch, partitioned(job, rows), found.dead_letters), found.cuts


def _more_columns(job: TopicJob, missing: pa.Schema) -> list[pa.Field]:
    """What the table is to be given; empty where it may not, and where nothing of it can be added."""
    may = job.rule.evolve != "none" and not job.rule.names_columns and job.columns is not None
    return lacking(job.columns or NO_COLUMNS, missing) if may else []


def process_topic(
    storage: Storage, job: TopicJob, records: TopicRecords, ranges: Mapping[int, OffsetRange]
) -> tuple[TopicBatch | None, Cuts]:
    """As `prepare_topic`, and written.

    Raises:
        TransformError: the transform raised or broke its promise.
        TransientError: the table did not take a file.
    """
    unwritten, cuts = prepare_topic(job, records, ranges)
    return unwritten.written(storage) if unwritten is not None else None, cuts


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


def load_hook(name: str) -> Callable[..., Any]:
    """The function that `module:function` names.

    Raises:
        ImportError, AttributeError: there is none.
    """
    module, _, function = name.partition(":")
    hook: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return hook
