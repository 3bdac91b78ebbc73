"""What the dataframe processor makes of a Spark that fails, with a session that does nothing but fail."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kgs_core.ingest.round.stops import StopCause
from kgs_core.ingest.worker.arrow_task import TaskContext
from kgs_core.ingest.worker.dataframe_task import DataFrameProcessor, ReadNote
from kgs_core.ingest.worker.dataframe_writer import WriterNote
from kgs_core.lake.files.storage import Storage
from kgs_core.model import OffsetRange, TopicPartition
from tests.topic_jobs import topic_job

IN_A_TASK = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "parquet.py", line 46, in write_table
kgs_core.errors.TransientError: table t: cannot write part-1: No space left on device
"""


def unchanged(rows, topic):
    return rows


JOB = topic_job({"transform": f"{__name__}:unchanged"})
NOTE = ReadNote.of(JOB, {0: OffsetRange(0, 1)})


@pytest.fixture
def read_by(tmp_path):
    """One read of one record by this session."""
    job = JOB
    task = TaskContext({"queued.max.messages.kbytes": 1000}, Storage(str(tmp_path)), None)

    def read_by(**spark):
        found = {"accumulator": lambda value, _: SimpleNamespace(value=value), "environment": {}}
        session = SimpleNamespace(sparkContext=SimpleNamespace(**found, _gateway=spark.get("gateway")), **spark)
        return DataFrameProcessor(session, task, 1.0).read(job, {0: OffsetRange(0, 1)})

    return read_by


@pytest.fixture
def read(read_by):
    """One read with a session whose first job fails with `error`, and whose JVM has ended or not."""

    def call(error, *, jvm_ended):
        def fail(_):
            raise error

        jvm = SimpleNamespace(poll=lambda: 1 if jvm_ended else None)
        return read_by(range=fail, gateway=SimpleNamespace(proc=jvm))

    return call


@pytest.fixture
def read_noted(read_by, monkeypatch):
    """One read of which the reader notes this."""

    def call(note, tasks=0, rows=0):
        def run(_, job, ranges, notes):
            notes.value.append(note)
            return [WriterNote(rows=rows)] * tasks

        monkeypatch.setattr(DataFrameProcessor, "_run", run)
        return read_by()

    return call


def test_jvm_that_has_ended_is_no_fault_of_the_transform(read):
    with pytest.raises(ConnectionRefusedError):
        read(ConnectionRefusedError(111, "Connection refused"), jvm_ended=True)


def test_partition_that_gives_nothing_waits_alone(read_noted):
    """It was planned again at once, so each round of all topics took ten seconds for ever, and nobody was told."""
    here = TopicPartition("t", 0)
    result = read_noted(replace(NOTE, troubles={here: (StopCause.NO_ANSWER, "nothing came for 10 s")}))
    assert result.troubles == {here: (StopCause.NO_ANSWER, "nothing came for 10 s")}
    assert (result.batches, result.failed, result.unavailable) == ([], {}, {})


def test_rows_are_counted_against_the_promise(read_noted):
    assert (
        read_noted(replace(NOTE, rows=2), 1, 1)
        .failed["t"]
        .endswith("gives 1 rows for 2 records against rows: one_to_one")
    )
    assert "rows in 2 tasks" in read_noted(replace(NOTE, rows=2), 2, 2).failed["t"]
    found = replace(NOTE.batch, records=3, bad_records=1)
    (batch,) = read_noted(replace(NOTE, rows=2, batch=found), 1, 2).batches
    assert (batch.ranges, batch.records, batch.bad_records) == ({0: OffsetRange(0, 1)}, 3, 1)


@pytest.mark.parametrize(
    ("error", "words"),
    [(ConnectionRefusedError("of a database"), "of a database"), (SystemExit("no licence"), "SystemExit: no licence")],
)
def test_any_other_exception_fails_the_topic_only(read, error, words):
    result = read(error, jvm_ended=False)
    assert words in result.failed["t"]
    assert result.unavailable == {}


def test_table_that_does_not_take_the_file_is_no_fault_of_the_transform(read):
    result = read(RuntimeError(IN_A_TASK), jvm_ended=False)
    assert result.unavailable == {"t": "table t: cannot write part-1: No space left on device"}
    assert result.failed == {}
