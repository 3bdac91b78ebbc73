"""The driver and a task that lives on, joined by a socket: whatever ends one of them ends the other."""

import os
import pickle
import threading

import pytest

from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.worker import long_task
from kgs_core.ingest.worker.long_task import LongTask


class Seed:
    """In place of an RDD: the task runs in the thread that waits for the job."""

    def __init__(self):
        self.rows_read = 0
        self.tasks_ended = 0

    def mapPartitions(self, body):  # noqa: N802 - Spark's name
        self.body = body
        return self

    def collect(self):
        try:
            return list(self.body(self.rows()))
        finally:
            self.tasks_ended += 1

    def rows(self):
        yield 0
        self.rows_read += 1


@pytest.fixture
def reads(monkeypatch):
    """What `read_round` is to do, request by request; a result says which request it answers."""
    found = {}

    def read_round(request):
        outcome = found.get(request)
        if outcome is not None:
            raise outcome
        return ReadResult(problems={request})

    monkeypatch.setattr(long_task, "read_round", read_round)
    return found


@pytest.fixture
def seed():
    return Seed()


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "spark-task"]


def test_one_task_answers_request_after_request_and_returns_at_the_end(seed, reads, tmp_path):
    task = LongTask(seed, tmp_path)
    assert [task.read(name).problems for name in "ab"] == [{"a"}, {"b"}]
    assert seed.tasks_ended == 0
    task.end()
    assert (seed.tasks_ended, seed.rows_read) == (1, 1), "its worker is used again only if its input was read"
    assert not threads()


def test_what_a_read_raises_is_raised_here_and_the_next_task_reads_on(seed, reads, tmp_path):
    reads["bad"] = MemoryError("no room")
    task = LongTask(seed, tmp_path)
    with pytest.raises(MemoryError, match="no room"):
        task.read("bad")
    assert not threads()
    (tmp_path / "again").mkdir()
    again = LongTask(seed, tmp_path / "again")
    assert again.read("good").problems == {"good"}
    again.end()


def test_a_connection_that_a_read_loses_is_its_failure_and_no_end_in_order(seed, reads, tmp_path):
    reads["cut"] = ConnectionResetError("the store went away")
    task = LongTask(seed, tmp_path)
    with pytest.raises(ConnectionResetError, match="the store went away"):
        task.read("cut")


def test_a_request_that_cannot_be_sent_leaves_no_task_behind(seed, reads, tmp_path):
    """It would have the one core for ever, and the next task would wait for it."""
    task = LongTask(seed, tmp_path)
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        task.read(lambda: None)
    assert (seed.tasks_ended, threads()) == (1, [])


def no_executor():
    raise ValueError("no executor")


@pytest.mark.parametrize(
    ("collect", "error"), [(no_executor, ValueError("no executor")), (list, RuntimeError("ended"))]
)
def test_a_job_that_ends_before_its_task_asks_for_anything_is_no_wait_for_ever(seed, reads, tmp_path, collect, error):
    seed.collect = collect
    with pytest.raises(type(error), match=str(error)):
        LongTask(seed, tmp_path)


def test_a_worker_that_dies_within_an_answer_fails_the_read(seed, reads, tmp_path, monkeypatch):
    """Half an answer, then the end of the stream, as a kill leaves it."""

    def send(stream, message):
        if isinstance(message, ReadResult):
            stream.write(b"\x80\x05\x95\xff")
            stream.flush()
            raise SystemExit
        pickled(stream, message)

    pickled = long_task._send
    monkeypatch.setattr(long_task, "_send", send)
    task = LongTask(seed, tmp_path)
    with pytest.raises(SystemExit):  # what the job's thread ended with
        task.read("a")


def test_a_driver_that_is_gone_ends_the_task(reads, tmp_path):
    """A killed driver's end of the socket is closed by the kernel; here by the end of a process of our own.

    A process: that the kernel does it is what is tried.
    """
    seed = Seed()
    ours, theirs = os.pipe()
    with_task = os.fork()
    if with_task == 0:
        os.close(ours)
        LongTask(OtherProcess(seed, theirs), tmp_path)
        os._exit(9)
    os.close(theirs)
    os.waitpid(with_task, 0)
    with os.fdopen(ours) as told:
        assert told.read() == "ended", "the task, in a process of its own, has returned"


class OtherProcess:
    """A seed whose task runs in a process of its own."""

    def __init__(self, seed, pipe):
        self.seed = seed
        self.pipe = pipe

    def mapPartitions(self, body):  # noqa: N802 - Spark's name
        self.body = body
        return self

    def collect(self):
        child = os.fork()
        if child == 0:
            list(self.body(self.seed.rows()))
            os.write(self.pipe, b"ended")
            os._exit(0)
        os.waitpid(child, 0)
