"""One round of the arrow processor against a mock cluster: what one record or one table does to its neighbours."""

import itertools
import os
import threading
from contextlib import contextmanager

import pyarrow.parquet as pq
import pytest

from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.worker import parsed_records, process_batch
from kgs_core.ingest.worker.arrow_task import ArrowRequest, TaskContext, read_round
from kgs_core.kafka.client_config import reading_client
from kgs_core.lake.files.storage import Storage
from kgs_core.model import OffsetRange, TopicPartition
from tests.topic_jobs import topic_job

pytestmark = pytest.mark.usefixtures("no_sessions_left")
NUMBER = itertools.count()
POISON = {
    "header key": ({"header": (b"caf\xe9", b"v")}, "header"),
    "time of a producer that writes nanoseconds": ({"ms": 1_700_000_000_000_000_000}, "timestamp"),
}


class Reader:
    """Rounds over topics of the mock cluster, each with one partition that begins at 0."""

    def __init__(self, kafka, root):
        self.kafka = kafka
        self.storage = Storage(str(root))
        self.jobs = {}
        self.start = {}

    def topic(self, name, *values, **rule):
        """A topic with these records: a value, or (value, what else there is of it)."""
        topic = f"{name}-{next(NUMBER)}"
        os.mkdir(self.storage.path(topic))
        self.kafka.topic(topic)
        for value in values:
            bare, more = value if isinstance(value, tuple) else (value, {})
            self.kafka.produce(topic, bare, **more)
        self.kafka.flush()
        self.jobs[topic] = topic_job({"topic": topic, **rule})
        self.start[TopicPartition(topic, 0)] = 0
        return topic

    def round(self):
        """The first round with something in it; one call is one task, with a new client's patience."""
        context = TaskContext(reading_client(self.kafka.settings()), self.storage, None)
        request = ArrowRequest(context, self.jobs, self.start, 1 << 20, 0.5, 5.0)
        for _ in range(5):
            result = read_round(request)
            if result != ReadResult(problems=result.problems, fetch_s=result.fetch_s, write_s=result.write_s):
                return result
        raise AssertionError(f"nothing came: {result}")

    def rows(self, table, file):
        return pq.read_table(self.storage.path(table, file.path)).to_pylist()


@pytest.fixture
def reader(kafka, tmp_path):
    return Reader(kafka, tmp_path)


def by_topic(result):
    return {batch.topic: batch for batch in result.batches}


@pytest.mark.parametrize("kind", POISON)
def test_record_whose_frame_cannot_be_taken_is_a_dead_letter_alone(reader, kind):
    what, named = POISON[kind]
    topic = reader.topic("poisoned", b"before", (b"bad", what), b"after")
    other = reader.topic("innocent", b"x")
    batches = by_topic(reader.round())
    assert set(batches) == {topic, other}
    batch = batches[topic]
    assert batch.ranges == {0: OffsetRange(0, 3)}
    assert (batch.records, batch.bad_records) == (3, 1)
    assert [(row["_offset"], row["value"]) for row in reader.rows(topic, batch.files[0])] == [
        (0, b"before"),
        (2, b"after"),
    ]
    (dead_letter,) = reader.rows(f"{topic}_dl", batch.dead_letters)
    assert (dead_letter["_offset"], dead_letter["value"]) == (1, b"bad")
    assert named in dead_letter["error"]
    assert dead_letter["_headers" if named == "header" else "_timestamp"] is None


@pytest.mark.parametrize("kind", POISON)
def test_record_whose_frame_cannot_be_taken_stops_its_partition_there(reader, kind):
    what, named = POISON[kind]
    topic = reader.topic("poisoned", b"before", (b"bad", what), b"after", on_error="stop")
    result = reader.round()
    (batch,) = result.batches
    assert batch.ranges == {0: OffsetRange(0, 1)}
    offset, reason = result.stopped[TopicPartition(topic, 0)]
    assert offset == 1
    assert named in reason


def test_headers_count_in_a_batch_and_in_what_was_read(reader):
    """160,000 records of 100 bytes with 10 KB of headers would be 1.6 GB in memory."""
    header = b"x" * (1 << 19)
    topic = reader.topic("headers", *[(b"v", {"header": (b"key", header)})] * 4)
    (batch,) = reader.round().batches
    assert batch.records == 1, "a batch of at most 1 MB cannot hold two of them with their names"
    assert batch.consumed_bytes == len(b"v") + len(b"key") + len(header)
    assert batch.ranges == {0: OffsetRange(0, 1)}
    assert topic in by_topic(reader.round())


def test_table_that_cannot_be_written_holds_up_its_topic_alone(reader, tmp_path):
    sick, well = reader.topic("sick", b"x"), reader.topic("well", b"x")
    (tmp_path / sick).rmdir()
    (tmp_path / sick).touch()  # a file where the table's folder should be
    result = reader.round()
    assert set(by_topic(result)) == {well}
    assert set(result.unavailable) == {sick}
    assert sick in result.unavailable[sick]
    assert result.failed == {}


def ends_the_process(rows, topic):
    raise SystemExit(topic)


def test_any_exception_of_one_topic_is_its_failure_alone(reader, monkeypatch):
    broken, well, right = reader.topic("broken", b"x"), reader.topic("well", b"x"), process_batch.sort_records

    def breaks(job, *rest):
        if job.topic == broken:
            raise ZeroDivisionError("what nobody\nthought of")
        return right(job, *rest)

    monkeypatch.setattr(process_batch, "sort_records", breaks)
    result = reader.round()
    assert set(by_topic(result)) == {well}
    assert result.failed == {broken: "ZeroDivisionError: what nobody thought of"}


def test_transform_that_ends_the_process_is_a_failed_transform(reader):
    hook = f"{ends_the_process.__module__}:{ends_the_process.__name__}"
    topic = reader.topic("exits", b"x", transform_arrow=hook)
    assert "SystemExit" in reader.round().failed[topic]


class StoreThatWaits(Storage):
    """An object store that takes a file once all of `files` are on their way, and never those of the table `sick`."""

    files: threading.Barrier
    sick: str

    is_in_objects = True

    def filesystem(self):
        return self

    def path(self, table, name=""):
        return f"{self.root}/{super().path(table, name)}"

    @contextmanager
    def open_output_stream(self, path):
        self.files.wait(30)
        if self.sick in path:
            raise OSError("the store says no")
        with Storage.filesystem(Storage("/")).open_output_stream(path) as stream:
            yield stream

    def delete_file(self, path):
        pass


def test_files_go_to_a_store_side_by_side_and_one_that_is_refused_is_its_topics_affair(reader, tmp_path):
    """One after the other, 500 topics would wait 500 times."""
    store = reader.storage = StoreThatWaits(str(tmp_path))
    topics = [reader.topic(f"t{i}", b"x", b"y") for i in range(4)]
    object.__setattr__(store, "files", threading.Barrier(len(topics)))
    object.__setattr__(store, "sick", topics[1])
    kept = reader.round()
    assert list(kept.unavailable) == [topics[1]]
    assert "the store says no" in kept.unavailable[topics[1]]
    assert [batch.topic for batch in kept.batches] == sorted({*topics} - {topics[1]})
    assert [len(reader.rows(batch.topic, batch.files[0])) for batch in kept.batches] == [2, 2, 2]


def test_what_formats_need_is_compiled_before_the_first_batch_which_has_a_deadline(reader, monkeypatch):
    loaded = []
    monkeypatch.setattr(parsed_records, "machine_code", loaded.append)
    client, formats = reading_client(reader.kafka.settings()), frozenset({"json", "raw"})
    read_round(ArrowRequest(TaskContext(client, reader.storage, None, formats=formats), {}, {}, 1, 0.0, 0.0))
    assert loaded == ["kgs_core.accel.json_scan"]
