"""From records to the files of a batch: parse, set bad records aside, transform, check the promise, write.

Both processors go by `ReadNote` and `conclude`; what lies between them is the arrow processor's.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from kgs_core.config import TableSpec
from kgs_core.config.settings import LakeSettings
from kgs_core.errors import PortError, TransientError, one_line
from kgs_core.ingest.fetch.topic_records import TopicRecords
from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.round.stops import StopCause
from kgs_core.ingest.worker.batch_files import write_routed
from kgs_core.ingest.worker.sorted_records import Cuts, EarlierReading, Sorted, sort_records
from kgs_core.ingest.worker.topic_job import MoreColumnsError, TopicJob, TopicPlan, load_hook
from kgs_core.lake.files.layout import Partitioned
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.places import PartitionKey, offsets_in
from kgs_core.lake.files.row_schema import DEAD_LETTER_SCHEMA, IDENTITY
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule import NO_OFFSETS
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import OffsetRange, TopicId, TopicPartition
from kgs_core.ports import FileWritten


class TransformError(Exception):
    """The user's transform raised, or gave rows that its promise does not allow."""


@dataclass(slots=True)
class ReadNote:
    """What was found in ranges of a topic beside the rows.

    Attributes:
        batch: of all that was found, without ranges and files.
        rows: how many there are, before a transform.
        cuts: what partitions are read up to.
        troubles: why partitions cannot be read on; then nothing else counts.
        received: as in `ReadResult`.
    """

    batch: TopicBatch
    rows: int = 0
    cuts: Cuts = field(default_factory=Cuts)
    troubles: dict[TopicPartition, tuple[StopCause, str]] = field(default_factory=dict)
    received: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, job: TopicJob) -> "ReadNote":
        """Nothing was found yet."""
        return cls(TopicBatch(job.topic, job.plan.topic_id, {}, (), dead_letter_marks=job.dead_letter_marks))

    def add(self, ranges: Mapping[int, OffsetRange], records: TopicRecords, found: Sorted) -> None:
        """Take in what became of records of the ranges."""
        self.rows += found.rows.num_rows
        old, new = self.cuts, found.cuts
        self.cuts = Cuts({**old.stopped, **new.stopped}, {**old.waiting, **new.waiting})
        batch = self.batch
        self.batch = replace(
            batch,
            records=batch.records + len(records),
            consumed_bytes=batch.consumed_bytes + records.consumed_bytes,
            oldest_ms=min((ms for ms in (batch.oldest_ms, records.oldest_ms) if ms), default=None),
            bad_records=batch.bad_records + found.bad,
            unsettled=batch.unsettled | found.unsettled,
            leader_epochs={**batch.leader_epochs, **records.leader_epochs(ranges_to_read(ranges, self.cuts))},
        )


def ranges_to_read(ranges: Mapping[int, OffsetRange], cuts: Cuts) -> dict[int, OffsetRange]:
    """The ranges without what lies at or behind a record that its partition is read up to."""
    return ranges_before(ranges, {p: offset for p, (offset, _) in cuts.by_partition.items()})


def ranges_before(ranges: Mapping[int, OffsetRange], ends: Mapping[int, int]) -> dict[int, OffsetRange]:
    """The ranges without what lies at or behind these ends; those that keep nothing are left out."""
    shorter = {p: r._replace(end=min(r.end, ends.get(p, r.end))) for p, r in ranges.items()}
    return {p: r for p, r in shorter.items() if r.end > r.start}


def conclude(job: TopicJob, ranges: Mapping[int, OffsetRange], note: ReadNote, rows: int) -> TopicBatch | None:
    """The batch of what was read, without its rows; None: no range keeps a record.

    `rows`: how many there are after the transform.

    Raises:
        TransformError: these are more or fewer than the transform promises.
    """
    check_count(job.plan.spec, rows, note.rows)
    kept = ranges_to_read(ranges, note.cuts)
    return replace(note.batch, ranges=kept) if kept else None


@dataclass(frozen=True, slots=True)
class UnwrittenBatch:
    """What became of records of one topic, while its rows and dead letters are in no files yet.

    Attributes:
        batch: without files; None: no range keeps a record.
        cuts: what partitions are read up to.
        rows: in the columns that the plan is given, with their partition values.
    """

    job: TopicJob
    batch: TopicBatch | None
    cuts: Cuts
    rows: Partitioned
    dead_letters: pa.Table

    def written(self, storage: Storage) -> ReadResult:
        """What is told of the topic, with its files. May be called by any thread: no code of the user's runs in it.

        Raises:
            TransientError: the table did not take a file.
        """
        batch = self.batch
        if batch is not None:
            files, sides = write_routed(storage, self.job, self.rows)
            dead_letters = write_dead_letters(storage, self.job.plan.spec, self.dead_letters)
            batch = replace(batch, files=files, sides=sides, dead_letters=dead_letters)
        return told(self.job.topic, batch, self.cuts)


def told(topic: str, batch: TopicBatch | None, cuts: Cuts) -> ReadResult:
    """What is told of one topic: its batch, and where its partitions stop."""
    stopped, waiting = (
        {TopicPartition(topic, p): at for p, at in found.items()} for found in (cuts.stopped, cuts.waiting)
    )
    return ReadResult([] if batch is None else [batch], stopped=stopped, waiting=waiting)


def prepare_topic(
    storage: Storage, job: TopicJob, records: TopicRecords, ranges: Mapping[int, OffsetRange]
) -> UnwrittenBatch:
    """The arrow processor: rows and dead letters of one topic.

    Raises:
        MoreColumnsError: nothing was made of the records: first the table is to be given more columns.
        TransformError: the transform raised or broke its promise.
        TransientError: the dead letters that are there already could not be read.
    """
    earlier = earlier_reading(storage, job, ranges)
    while True:
        unwritten = _prepared(job, records, ranges, earlier)
        left = unwritten.rows.cut()
        if left is None:
            return unwritten
        # Once more with fewer records, from the parser on: a transform may have made its rows of those left out, too
        records, ranges = records.before(left), ranges_before(ranges, left)


def _prepared(
    job: TopicJob, records: TopicRecords, ranges: Mapping[int, OffsetRange], earlier: EarlierReading
) -> UnwrittenBatch:
    plan = job.plan
    found = sort_records(plan, records, earlier)
    if more := plan.more_columns(found.missing):
        raise MoreColumnsError(pa.schema(more))
    note = ReadNote.of(job)
    note.add(ranges, records, found)
    rows = transform_arrow(plan, found.rows) if found.rows.num_rows else found.rows
    batch = conclude(job, ranges, note, rows.num_rows)
    return UnwrittenBatch(job, batch, found.cuts, partitioned(plan.spec, rows), found.dead_letters)


def earlier_reading(storage: Storage, job: TopicJob, ranges: Mapping[int, OffsetRange]) -> EarlierReading:
    """What of these ranges is there; the lake is asked only where a mark is above a start, as after a kill.

    Raises:
        TransientError: dead letters or side tables could not be read.
    """
    letters_table = job.plan.spec.dead_letters_table
    marks: dict[int, int] = {}
    found: dict[str, dict[int, set[int]]] = {}
    for table, of_table in {letters_table: job.dead_letter_marks, **job.side_marks}.items():
        ends = {p: end for p, r in ranges.items() if (end := of_table.get(p) or 0) > r.start}
        if ends:
            marks |= {p: max(end, marks.get(p, 0)) for p, end in ends.items()}
            spans = {p: OffsetRange(ranges[p].start, end) for p, end in ends.items()}
            found[table] = _offsets(storage, job.plan.topic_id, table, spans)
    letters = found.pop(letters_table, {})
    rows = {p: set().union(*(each.get(p, ()) for each in found.values())) for p in marks}
    return EarlierReading(marks, letters, rows)


def _offsets(storage: Storage, topic_id: TopicId, table: str, spans: Mapping[int, OffsetRange]) -> dict[int, set[int]]:
    within = OffsetRange(min(span.start for span in spans.values()), max(span.end for span in spans.values()))
    try:
        lake = open_lake(LakeSettings(root=storage.root, storage_options=dict(storage.options)))
        there = offsets_in(lake.pin(table), within)
    except PortError:
        raise
    except Exception as e:
        raise TransientError(f"table {table}: cannot be read: {one_line(e)}") from e
    found = {p: there.get(PartitionKey(topic_id, p), NO_OFFSETS).tolist() for p in spans}
    return {p: {offset for offset in found[p] if offset in range(*span)} for p, span in spans.items()}


def partitioned(spec: TableSpec, rows: pa.Table) -> Partitioned:
    """The rows with their partition values.

    Raises:
        TransformError: one has none that the table could take; a value of a record itself always can.
    """
    try:
        return Partitioned(spec.rule, rows)
    except ValueError as e:
        raise TransformError(f"topic {spec.topic}: {e}") from e


def write_dead_letters(storage: Storage, spec: TableSpec, dead_letters: pa.Table) -> FileWritten | None:
    """The dead letters in a file of the dead-letter table; None when there are none."""
    if not dead_letters.num_rows:
        return None
    batches = dead_letters.to_batches()
    return write_table(storage, spec.dead_letters_table, batches, DEAD_LETTER_SCHEMA, beside=spec.table)


def transform_arrow(plan: TopicPlan, rows: pa.Table) -> pa.Table:
    """Rows after the user's `transform_arrow`, in the table's columns.

    Raises:
        TransformError: it raised, lost the origin columns, or broke its promise.
    """
    spec, hook = plan.spec, plan.spec.rule.transform_arrow
    if hook is None:
        return rows.combine_chunks()
    try:
        out = load_hook(hook)(rows, spec.topic)
        out = out.select(plan.given.names).cast(plan.given).combine_chunks()
    except (Exception, SystemExit) as e:  # one that ends the process would take the other topics with it
        raise TransformError(f"transform_arrow {hook}: {type(e).__name__}: {e}") from e
    check_origins(spec, out)
    check_count(spec, out.num_rows, rows.num_rows)
    return out


def check_origins(spec: TableSpec, out: pa.Table) -> None:
    """Whether each row says which record it is of, and that it is its only one; only IDENTITY columns are looked at.

    Raises:
        TransformError: they do not, against `rows: ...`.
    """
    if any(out.column(name).null_count for name in IDENTITY):
        raise TransformError(f"the transform of {spec.topic} left nulls in {', '.join(IDENTITY)}")
    if spec.rule.rows == "any":
        return
    pairs = out.select(["_partition", "_offset"]).group_by(["_partition", "_offset"]).aggregate([])
    if pairs.num_rows != out.num_rows:
        raise TransformError(f"the transform of {spec.topic} gives several rows for one record: say rows: any")


def check_count(spec: TableSpec, rows: int, rows_in: int) -> None:
    """Whether the transform kept `rows: ...` in number.

    Raises:
        TransformError: it did not.
    """
    promise = spec.rule.rows
    if (promise != "any" and rows > rows_in) or (promise == "one_to_one" and rows != rows_in):
        raise TransformError(
            f"the transform of {spec.topic} gives {rows} rows for {rows_in} records against rows: {promise}"
        )
