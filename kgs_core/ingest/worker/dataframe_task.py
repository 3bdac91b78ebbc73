"""The dataframe processor: exact offset ranges of one topic through the user's Spark transform.

`spark.range(1)` -> reader (mapInArrow) -> transform -> writer (mapInArrow): three parts of one Spark job. Exact ranges
make Spark's re-execution of the plan, or a transform that reads its input twice, give the same rows. What the reader
found beside the rows (dead letters, losses) comes back through an accumulator, which also proves that it was read to
the end: a transform that takes only a part (a limit) would otherwise lose the rest.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import AccumulatorParam

from kgs_core.errors import TransientError
from kgs_core.ingest.fetch.fetch_client import UnreadableError
from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.round.stops import StopCause
from kgs_core.ingest.worker.arrow_task import TaskContext, client_of, own_affair
from kgs_core.ingest.worker.batch_files import told, write_dead_letters
from kgs_core.ingest.worker.dataframe_writer import NOTE_SCHEMA, WriterNote, notes_of, write_rows
from kgs_core.ingest.worker.earlier_reading import earlier_reading
from kgs_core.ingest.worker.parsed_records import parse_records
from kgs_core.ingest.worker.process_batch import TransformError, check_count
from kgs_core.ingest.worker.sorted_records import Cut, Sorted, ranges_before, sort_records
from kgs_core.ingest.worker.topic_job import TopicJob, load_hook
from kgs_core.kafka.records import collector_paused
from kgs_core.lake.files.row_schema import DEAD_LETTER_SCHEMA, parsed_schema
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.model import OffsetRange, TopicPartition
from kgs_core.spark.errors import cause, transient
from kgs_core.spark.session import jvm_has_ended
from kgs_core.system.failpoints import failpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUEUE_KBYTES = 16_384


@dataclass(slots=True)
class ReadNote:
    """What was found in ranges of a topic beside the rows.

    Attributes:
        batch: of all that was found, without files; its ranges end at the cuts.
        rows: how many there are, before the transform.
        cuts: by partition.
        troubles: why partitions cannot be read on; then nothing else counts.
        received: as in `ReadResult`.
    """

    batch: TopicBatch
    rows: int = 0
    cuts: dict[int, Cut] = field(default_factory=dict)
    troubles: dict[TopicPartition, tuple[StopCause, str]] = field(default_factory=dict)
    received: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, job: TopicJob, ranges: Mapping[int, OffsetRange]) -> "ReadNote":
        """Nothing was found yet in these ranges."""
        return cls(TopicBatch(job.topic, job.plan.topic_id, ranges, (), dead_letter_marks=job.dead_letter_marks))

    def add(self, found: Sorted) -> None:
        """Take in what became of more of the records."""
        self.rows += found.rows.num_rows
        self.cuts |= found.cuts
        old, new = self.batch, found.batch
        self.batch = replace(
            new,
            records=old.records + new.records,
            consumed_bytes=old.consumed_bytes + new.consumed_bytes,
            oldest_ms=min((ms for ms in (old.oldest_ms, new.oldest_ms) if ms), default=None),
            bad_records=old.bad_records + new.bad_records,
            unsettled=old.unsettled | new.unsettled,
            leader_epochs={**old.leader_epochs, **new.leader_epochs},
        )


class _Notes(AccumulatorParam[list[ReadNote]]):
    def zero(self, value: list[ReadNote]) -> list[ReadNote]:  # noqa: ARG002 - Spark's signature
        return []

    def addInPlace(self, value1: list[ReadNote], value2: list[ReadNote]) -> list[ReadNote]:  # noqa: N802
        return value1 + value2


class DataFrameProcessor:
    """Runs topics whose rule names `transform` on a Spark session."""

    def __init__(self, spark: "SparkSession", context: TaskContext, timeout_s: float) -> None:
        self._spark = spark
        # One client a topic, so each prefetches less than the one of the arrow processor.
        queue = min(int(context.client["queued.max.messages.kbytes"]), QUEUE_KBYTES)
        self._context = replace(context, client={**context.client, "queued.max.messages.kbytes": queue})
        self._timeout_s = timeout_s

    def warm(self) -> None:
        """Have the workers up, and Spark's planner at work once: the first job takes seconds, whatever it does."""
        with _worker_pool(self._spark, "reader"):
            rows = self._spark.range(1).mapInArrow(_nothing, "id long").coalesce(1)
        with _worker_pool(self._spark, "writer"):
            rows.mapInArrow(_nothing, "id long").collect()

    def read(self, job: TopicJob, ranges: Mapping[int, OffsetRange]) -> ReadResult:
        """Read exactly these ranges of the job's topic, transform and write them.

        Raises:
            Exception: Spark's JVM has ended, so no batch will ever succeed; whatever Spark made of it.
        """
        began = time.monotonic()
        result = ReadResult()
        try:
            with _exit_refused():
                written, found = self._run_until_it_fits(job, ranges)
        except Exception as e:  # py4j and Spark raise many kinds; whatever it is, the batch is off
            if jvm_has_ended(self._spark):
                raise
            if (again := transient(e)) is not None:
                result.unavailable[job.topic] = str(again)
            else:
                result.failed[job.topic] = f"transform {job.plan.spec.rule.transform}: {cause(e)}"
            return result
        with own_affair(job.topic, result):
            if not found:
                hook = job.plan.spec.rule.transform
                raise TransformError(f"transform {hook} did not read all rows: no limit, no sampling")
            result.troubles = found[0].troubles
            result.received = sum((each.received for each in found), Counter())
            if not result.troubles:
                result.add(_concluded(job, found, written))
        result.write_s = time.monotonic() - began
        return result

    def _run_until_it_fits(
        self, job: TopicJob, ranges: Mapping[int, OffsetRange]
    ) -> tuple[list[WriterNote], list[ReadNote]]:
        """What came of the ranges, or of so much of them that it is not too many files."""
        while True:
            notes = self._spark.sparkContext.accumulator([], _Notes())
            written = self._run(job, ranges, notes)
            left = next((each.left for each in written if each.left is not None), None)
            if left is None:
                return written, notes.value
            ranges = ranges_before(ranges, left)

    def _run(self, job: TopicJob, ranges: Mapping[int, OffsetRange], notes: Any) -> list[WriterNote]:
        from pyspark.sql.pandas.types import from_arrow_schema

        context, timeout_s = self._context, self._timeout_s

        def reader(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                pass
            with collector_paused():
                yield from _read(context, job, ranges, timeout_s, notes)

        def writer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from write_rows(context, job, batches)

        hook = load_hook(str(job.plan.spec.rule.transform))
        with _worker_pool(self._spark, "reader"):
            source: DataFrame = self._spark.range(1).mapInArrow(
                reader, from_arrow_schema(parsed_schema(job.plan.spec.rule, job.plan.values))
            )
        rows = hook(source, job.topic).select(*job.plan.given.names).coalesce(1)
        with _worker_pool(self._spark, "writer"):
            told = rows.mapInArrow(writer, from_arrow_schema(NOTE_SCHEMA))
        return notes_of(told.collect())


def _concluded(job: TopicJob, notes: list[ReadNote], written: list[WriterNote]) -> ReadResult:
    """What is told of the topic, by what its readers and writers have noted.

    Raises:
        TransformError: the transform broke its promise.
        TransientError: the batch is to be read again.
    """
    note = notes[0]
    if any((other.cuts, other.batch.bad_records) != (note.cuts, note.batch.bad_records) for other in notes):
        # Read several times, as the user's plan may want it, and a registry did not always say the same
        raise TransientError("the schema registry did not answer alike all the time: the batch is read again")
    if len(written) > 1:
        raise TransformError(f"the transform of {job.topic} gives its rows in {len(written)} tasks, not in one")
    rows = written[0] if written else WriterNote()
    check_count(job.plan.spec, rows.rows, note.rows)
    return told(replace(note.batch, files=rows.files, sides=rows.sides), note.cuts)


def transform_schema(spark: "SparkSession", transform: str, topic: str, schema: pa.Schema) -> pa.Schema:
    """Columns that a transform makes of `schema`, from Spark's analysis; no job runs.

    Raises:
        TransformError: it cannot be loaded, or it raised.
    """
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    try:
        empty = spark.createDataFrame([], from_arrow_schema(schema))
        spark_schema = load_hook(transform)(empty, topic).schema
    except (Exception, SystemExit) as e:
        raise TransformError(f"transform {transform}: {type(e).__name__}: {cause(e)}") from e
    return to_arrow_schema(spark_schema, timezone="UTC")


@contextmanager
def _worker_pool(spark: "SparkSession", role: str) -> Iterator[None]:
    """Give a Python function a pool of workers of its own, by an environment variable that is part of the pool's key.

    Otherwise Spark hands the reader's and the writer's idle workers out in turn, and the reader's Kafka client is in
    the wrong one every second time.
    """
    environment = spark.sparkContext.environment
    environment["KGS_ROLE"] = role
    try:
        yield
    finally:
        del environment["KGS_ROLE"]


@contextmanager
def _exit_refused() -> Iterator[None]:
    """Have an exit in the transform, which runs in this process too, be its error: it would take the others with it."""
    try:
        yield
    except SystemExit as e:
        raise TransformError(f"SystemExit: {e}") from e


def _nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    pa.array([b""])  # loads pandas, which takes a second
    for _ in batches:
        pass
    yield from ()


def _read(
    context: TaskContext, job: TopicJob, ranges: Mapping[int, OffsetRange], timeout_s: float, notes: Any
) -> Iterator[pa.RecordBatch]:
    note = ReadNote.of(job, ranges)
    dead_letters: list[pa.Table] = []
    try:
        earlier = earlier_reading(context.storage, job, ranges)
        client = client_of(f"topic {job.topic}", context, {job.topic: job})
        for fetched in client.read_exact({TopicPartition(job.topic, p): r for p, r in ranges.items()}, timeout_s):
            # A partition gives nothing behind the record that it is read up to, in later chunks neither.
            every = fetched.of(job.topic)
            live = every.before(dict.fromkeys(note.cuts, 0)) if note.cuts else every
            found = sort_records(job, note.batch.ranges, live, parse_records(job.plan, live), earlier)
            note.add(found)
            dead_letters.append(found.dead_letters)
            yield from found.rows.combine_chunks().to_batches()
    except UnreadableError as e:
        note.troubles = e.troubles
    note.received = Counter(client.received())
    failpoint("fetched", context.crash)
    letters = pa.concat_tables([DEAD_LETTER_SCHEMA.empty_table(), *dead_letters])
    note.batch = replace(note.batch, dead_letters=write_dead_letters(context.storage, job.plan.spec, letters))
    notes.add([note])
