"""The driver of rounds: real tables in a folder; Kafka and what a worker reads from memory."""

import shutil
import threading
from types import SimpleNamespace

import pytest

from kgs_core.config.settings import ConsumerSettings
from kgs_core.errors import PermanentError, PortError
from kgs_core.ingest.driver.rounds import Ingest
from kgs_core.ingest.opening.topic_state import TopicState
from kgs_core.ingest.round.questions import ReadBatch, ReadResult
from kgs_core.ingest.round.stops import StopCause
from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.model import OffsetRange, TopicId, TopicPartition
from tests.sink import Sink

ID = TopicId("id")


class Kafka:
    """Topics of one partition: log starts and ends; `errors`: what is said of a topic instead."""

    def __init__(self):
        self.first, self.end = 0, 500
        self.errors: dict[str, PortError] = {}
        self.away: PortError | None = None

    def each_offset(self, tps, which, *, committed_reads=False):
        return self._each(tps, lambda tp: tp.topic, self.first if which == "earliest" else self.end)

    def each_topic_id(self, topics):
        return self._each(topics, str, ID)

    def _each(self, subjects, topic_of, answer):
        if self.away is not None:
            raise self.away
        return {s: self.errors.get(topic_of(s), answer) for s in subjects}


class Runner:
    """A worker that reads ten records of every partition, but what `result` says."""

    def __init__(self):
        self.result: ReadResult | None = None
        self.seen: list[ReadBatch] = []
        self.jobs: list[dict[str, TopicJob]] = []

    def end_task(self):
        """Holds nothing."""

    def read(self, question, jobs):
        self.seen.append(question)
        self.jobs.append(jobs)
        if self.result is not None:
            return self.result
        planned = question.planned
        exact = {TopicPartition(planned.topic, p): r.start for p, r in planned.ranges.items()} if planned else {}
        found = ReadResult()
        for tp, start in {**question.start, **exact}.items():
            found.batches.append(
                TopicBatch(tp.topic, ID, {tp.partition: OffsetRange(start, start + 10)}, (), records=10)
            )
        return found


class Rig:
    """Two topics, `sick` and `well`."""

    def __init__(self, root, **rule):
        self.storage = Storage(str(root))
        self.kafka, self.runner = Kafka(), Runner()
        self.states = {topic: self.state(topic, **rule) for topic in ("sick", "well")}
        offsets = SimpleNamespace(report=lambda topic_id, table, positions: None)
        self.ingest = Ingest(
            self.states, ConsumerSettings(batch_bytes=1_000_000, wait_time_s=0.0), self.runner, self.kafka, offsets
        )

    def state(self, topic, **rule):
        raw = {"format": "raw", "schema": None, **rule}
        state = TopicState(Sink(self.storage, topic=topic, topic_id=ID, table=topic, **raw).started(1).table)
        state.own(frozenset({0}))
        return state

    def position(self, topic):
        return self.states[topic].table.stored_position(0)

    def causes(self, topic):
        return {stop.cause for stop in self.states[topic].progress.stops.values()}


def test_topic_whose_id_cannot_be_asked_for_waits_alone(rig):
    rig.kafka.errors["sick"] = PermanentError("sick: not authorized: grant Describe")
    report = rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (0, 10)
    assert rig.states["sick"].progress.reported_stops[0].reason == "sick: not authorized: grant Describe"
    assert (report.batches, report.records) == (1, 10)


def test_table_that_does_not_answer_is_nobody_elses_trouble(rig, tmp_path):
    shutil.rmtree(tmp_path / "sick")
    rig.ingest.round()
    assert rig.position("well") == 10
    rig.ingest.settle()
    assert rig.causes("sick")
    assert rig.ingest.round().refused == 1, "it was tried for longer than others shall wait"
    assert rig.position("well") == 20


class PanicException(BaseException):
    """As a panic of Rust is, which ended the consumer as if somebody had asked for it."""


@pytest.mark.parametrize("error", [ValueError("what no adapter translates"), PanicException("index out of bounds")])
def test_exception_of_any_kind_out_of_a_table_is_that_topics_trouble(rig, monkeypatch, error):
    def broken(batch):
        raise error

    monkeypatch.setattr(rig.states["sick"].table, "commit", broken)
    rig.ingest.round()
    assert rig.position("well") == 10
    stop = rig.states["sick"].progress.stops[0]
    assert (stop.cause, stop.position) == (StopCause.NO_ANSWER, 0), "its table says where it stands: it is read again"
    assert stop.look_at is not None
    assert f"{type(error).__name__}: {error}" in stop.reason


def test_spark_that_fails_is_the_callers_and_positions_stay(rig, monkeypatch):
    def dead(question, jobs):
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(rig.runner, "read", dead)
    with pytest.raises(ConnectionRefusedError):
        rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (0, 0)


def test_worker_is_given_what_the_look_of_its_own_round_has_found(rig):
    """It got marks and epochs of before: a false "log truncated" at the moved position, or a refused batch."""
    state = rig.states["sick"]
    state.table.commit(
        TopicBatch("sick", ID, {0: OffsetRange(0, 7)}, (), records=7, leader_epochs={0: 3})
    )  # another consumer's, or `kgs accept-loss`
    state.progress = state.progress.stopped({0: "offset out of range"}, StopCause.OUT_OF_RANGE, 0.0).looking_at_once(
        0.0
    )
    rig.ingest.round()
    assert rig.runner.seen[0].start[TopicPartition("sick", 0)] == 7
    assert rig.runner.jobs[0]["sick"].leader_epochs == {0: 3}


def test_tables_are_asked_and_written_side_by_side(rig, monkeypatch):
    """Each commit waits until both are under way: one after the other they would never come back."""
    meeting = threading.Barrier(2, timeout=30)
    for state in rig.states.values():
        commit = state.table.commit

        def together(batch, commit=commit):
            meeting.wait()
            return commit(batch)

        monkeypatch.setattr(state.table, "commit", together)
    rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (10, 10)
