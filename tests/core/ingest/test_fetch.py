"""The reading client without a broker: when it comes back, and what is loaded before its first batch."""

import subprocess
import sys
import threading

import pytest

from kgs_core.ingest.fetch import fetch_sessions
from kgs_core.ingest.fetch.fetch_client import Fetched
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.model import TopicPartition

NOWHERE = {
    "bootstrap.servers": "127.0.0.1:9",
    "group.id": "none",
    "log_level": 0,
    "socket.connection.setup.timeout.ms": 1000,
}


@pytest.fixture
def session():
    session = NativeFetchSession(NOWHERE)
    yield session
    session.close()


@pytest.mark.parametrize("wait_time_s", [0.0, 1.0])
@pytest.mark.timeout(60)
def test_comes_back_when_it_is_interrupted_however_long_it_could_wait(session, wait_time_s):
    interrupt = threading.Timer(0.2, lambda: None)
    interrupt.start()
    start = {TopicPartition("t", 0): 0}
    assert session.gather(start, 1000, wait_time_s, 3600, lambda: not interrupt.is_alive()) == Fetched()


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("topics", "wait_s", "most_s"), [("", 1.0, 3600), ("ab", 0.1, 0.1)])
def test_nothing_to_read_and_a_broker_that_does_not_answer_are_not_waited_for(session, topics, wait_s, most_s):
    assert session.gather({TopicPartition(topic, 0): 0 for topic in topics}, 1000, wait_s, most_s) == Fetched()


class Client:
    def __init__(self, _config):
        self.is_open = True

    def close(self):
        self.is_open = False


@pytest.mark.usefixtures("no_sessions_left")
def test_client_of_a_topic_that_has_gone_is_ended_and_those_in_use_are_kept(monkeypatch):
    """Each topic with a transform that ever was ours kept its client, threads and fetched records: for ever."""
    now = 0.0
    monkeypatch.setattr(fetch_sessions.time, "monotonic", lambda: now)
    monkeypatch.setattr(fetch_sessions, "NativeFetchSession", Client)
    gone = fetch_sessions.session("topic gone", {})
    used = fetch_sessions.session("topic used", {})
    for now in (fetch_sessions.UNUSED_S / 2, fetch_sessions.UNUSED_S, fetch_sessions.UNUSED_S + 1):  # noqa: B007 - the clock's
        assert fetch_sessions.session("topic used", {}) is used
    assert (gone.is_open, used.is_open) == (False, True)
    assert fetch_sessions.session("topic gone", {}).is_open


FIRST_BATCH = """
import os, sys, tempfile
from confluent_kafka.cimpl import Message
from kgs_core.ingest.worker.arrow_task import read_round
from kgs_core.ingest.fetch import fetch_sessions
from tests.processing import process_topic
from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.lake.files.storage import Storage
from kgs_core.model import OffsetRange
from tests.object_fetch import ObjectFetchSession
from tests.topic_jobs import topic_job

fetch_sessions.NativeFetchSession = lambda config: None
fetch_sessions.session("arrow", {})
loaded = set(sys.modules)
job = topic_job({})
root = tempfile.mkdtemp()
os.mkdir(f"{root}/t")
record = Message(topic="t", partition=0, offset=0, key=b"k", value=b"v", timestamp=(1, 1700000000000))
batch, _ = process_topic(Storage(root), job, records_of([record]), {0: OffsetRange(0, 1)})
assert batch.records == 1
print(sorted({name.partition(".")[0] for name in set(sys.modules) - loaded}))
"""


def test_first_batch_loads_nothing_any_more():
    """A second of loading would fall into the first batch of a hand-over, and miss the freeze of what is loaded."""
    done = subprocess.run([sys.executable, "-c", FIRST_BATCH], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
