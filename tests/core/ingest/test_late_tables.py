"""Rounds beside a table that is late to answer: real tables in a folder; Kafka and a worker from memory."""

import threading
import time

import pytest

from kgs_core.errors import TransientError
from kgs_core.ingest.driver import rounds
from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.round.stops import StopCause
from kgs_core.model import TopicPartition
from tests.core.ingest.test_rounds import Rig
from tests.waiting import wait_until

SICK, WELL = TopicPartition("sick", 0), TopicPartition("well", 0)


class Late:
    """A call that waits for `answers`, then does as before, or fails."""

    def __init__(self, call):
        self.call = call
        self.answers = threading.Event()
        self.asked = 0
        self.at_once = 0
        self.most_at_once = 0
        self.error: Exception | None = None

    def __call__(self, *arguments):
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        assert self.answers.wait(60)
        self.at_once -= 1
        if self.error is not None:
            raise self.error
        return self.call(*arguments)


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch):
    monkeypatch.setattr(rounds, "PATIENCE_S", 0.3)


@pytest.fixture
def commit(rig, monkeypatch):
    late = Late(rig.states["sick"].table.commit)
    monkeypatch.setattr(rig.states["sick"].table, "commit", late)
    yield late
    late.answers.set()


def round_until(rig, is_so):
    def one():
        rig.ingest.round()
        return is_so()

    wait_until(one, 30, "rounds")


def test_others_are_read_and_committed_while_a_table_does_not_answer(rig, commit):
    """All answers of a stage were waited for: a table of ten seconds a commit gave every other one ten seconds, too."""
    began = time.monotonic()
    rig.ingest.round()
    assert began <= (rig.ingest.late_since or 0.0) <= time.monotonic()
    round_until(rig, lambda: rig.position("well") >= 40)
    assert not any(SICK in question.start for question in rig.runner.seen[2:]), "one was read ahead"
    commit.answers.set()
    round_until(rig, lambda: SICK in rig.runner.seen[-1].start)
    assert rig.runner.seen[-1].start[SICK] == 10
    assert commit.most_at_once == 1


def test_batch_of_a_late_table_is_in_hand_until_it_has_answered(rig, commit):
    rig.ingest.round()
    rig.ingest.settle({"well"})
    waits = threading.Thread(target=rig.ingest.settle, args=[{"sick"}], daemon=True)
    waits.start()
    waits.join(0.2)
    assert waits.is_alive()
    commit.answers.set()
    waits.join(30)
    assert not waits.is_alive()
    assert rig.position("sick") == rig.states["sick"].progress.positions[0] == 10
    assert rig.ingest.round().batches == 3, "what has landed beside is told by the next round"


def test_late_commit_of_unknown_outcome_has_its_table_asked_before_it_is_read_again(rig, commit):
    rig.ingest.round()
    commit.error = TransientError("no answer")
    commit.answers.set()
    rig.ingest.settle()
    stop = rig.states["sick"].progress.stops[0]
    assert (stop.cause, stop.reason, rig.position("sick")) == (StopCause.NO_ANSWER, "no answer", 0)
    assert rig.ingest.round().refused == 1


def test_table_that_is_looked_at_and_does_not_answer_holds_up_nobody(rig, monkeypatch):
    state = rig.states["sick"]
    state.progress = state.progress.stopped({0: "corrupt"}, StopCause.CORRUPT, 0.0).looking_at_once(0.0)
    late = Late(state.table.positions)
    monkeypatch.setattr(state.table, "positions", late)
    round_until(rig, lambda: rig.position("well") == 20)
    assert late.asked == 1
    late.answers.set()
    round_until(rig, lambda: SICK in rig.runner.seen[-1].start)
    assert late.asked == 1, "it is read on trial, and not looked at once more"


def test_only_topic_is_waited_for_and_its_report_is_that_of_its_round(rig, commit):
    del rig.states["well"]
    threading.Timer(0.2, commit.answers.set).start()
    assert rig.ingest.round().batches == 1
    assert not rig.states["sick"].is_at_work


def test_tables_that_are_all_slow_alike_are_waited_for_together(tmp_path, monkeypatch):
    """Each would be left behind in turn, and every round read one topic."""
    rig = Rig(tmp_path)
    monkeypatch.setattr(rounds, "PATIENCE_S", 0.0)
    for state in rig.states.values():
        late = Late(state.table.commit)
        monkeypatch.setattr(state.table, "commit", late)
        threading.Timer(0.5, late.answers.set).start()
    assert rig.ingest.round().batches == 2


def test_nothing_is_read_while_every_table_is_late(rig, commit):
    rig.ingest.round()
    rig.runner.result = ReadResult(troubles={WELL: (StopCause.OUT_OF_RANGE, "gone")})
    for _ in range(2):  # the first commits what was read ahead
        rig.ingest.round()
    reads = len(rig.runner.seen)
    threading.Timer(0.2, commit.answers.set).start()
    rig.runner.result = None
    rig.ingest.round()
    assert rig.runner.seen[reads].start == {SICK: 10}, "its answer was waited for, and it was read in the same round"
