"""The driver of rounds reads the next batch while it commits one, and lets batches grow: real tables, fake reader."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kgs_core.config.settings import ConsumerSettings
from kgs_core.errors import TransientError
from kgs_core.ingest.driver import reading_ahead, rounds
from kgs_core.ingest.round.questions import ReadBatch, ReadResult
from kgs_core.ingest.worker.sorted_records import TopicJob
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.model import TopicPartition
from kgs_core.ports import CommitOutcome
from tests.core.ingest.test_rounds import Rig

PATIENCE_S = 30.0


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.ingest.close()


def starts(rig: Rig) -> list[tuple[int | None, int | None]]:
    """Where each reading began, of `sick` and `well`."""
    sick, well = (TopicPartition(topic, 0) for topic in ("sick", "well"))
    return [(seen.start.get(sick), seen.start.get(well)) for seen in rig.runner.seen]


def test_the_next_batch_is_read_while_one_is_committed_and_committed_by_the_next_round(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, read, is_ahead = rig.states["well"].table, rig.runner.read, threading.Event()
    commit = table.commit

    def seen(question: ReadBatch, jobs: dict[str, TopicJob]) -> ReadResult:
        if question.start[TopicPartition("well", 0)] == 10:
            is_ahead.set()
        return read(question, jobs)

    def waiting(batch: TopicBatch) -> CommitOutcome:
        assert is_ahead.wait(PATIENCE_S), "the second batch is read only after the first has landed"
        return commit(batch)

    monkeypatch.setattr(rig.runner, "read", seen)
    monkeypatch.setattr(table, "commit", waiting)
    rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (10, 10)
    assert starts(rig) == [(0, 0), (10, 10)]
    rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (20, 20)
    assert starts(rig) == [(0, 0), (10, 10), (20, 20)]


@pytest.mark.parametrize("refusal", [TransientError("no answer"), CommitOutcome.REFUSED])
def test_what_was_read_behind_a_batch_that_did_not_land_is_dropped_of_that_topic_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, refusal: object
) -> None:
    def refused(batch: TopicBatch) -> object:
        if isinstance(refusal, Exception):
            raise refusal
        return refusal

    with monkeypatch.context() as patch:
        patch.setattr(rig.states["sick"].table, "commit", refused)
        rig.ingest.round()
    assert starts(rig) == [(0, 0), (10, 10)]
    report = rig.ingest.round()
    assert (report.batches, rig.position("sick"), rig.position("well")) == (1, 0, 20)
    rig.states["sick"].progress = rig.states["sick"].progress.looking_at_once(0.0)
    for _ in range(2):
        rig.ingest.round()
    assert rig.position("sick") >= 10
    assert rig.position("well") >= 30


def test_an_answer_that_got_lost_of_a_commit_that_landed_costs_no_batch(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rig.states["sick"].table
    commit = table.commit

    def silent(batch: TopicBatch) -> object:
        commit(batch)
        raise TransientError("connection reset")

    with monkeypatch.context() as patch:
        patch.setattr(table, "commit", silent)
        rig.ingest.round()
    rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (20, 20)
    assert starts(rig)[:2] == [(0, 0), (10, 10)]


def test_nothing_is_read_ahead_once_an_assignment_or_a_signal_waits(rig: Rig) -> None:
    """It would be dropped, and the end of the round would wait for it."""
    rig.ingest.round(lambda: True)
    assert (rig.position("sick"), rig.position("well")) == (10, 10)
    assert starts(rig) == [(0, 0)]
    rig.ingest.round()
    assert starts(rig) == [(0, 0), (10, 10), (20, 20)]


def test_what_is_let_go_drops_what_was_read_ahead_of_its_topic_alone(rig: Rig) -> None:
    rig.ingest.round()
    rig.ingest.settle({"another"})
    rig.ingest.round()
    assert starts(rig) == [(0, 0), (10, 10), (20, 20)]
    rig.ingest.settle({"sick"})
    rig.states["sick"].give_up(frozenset({0}))
    rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (20, 30)
    assert starts(rig)[3:] == [(None, 30)]
    rig.ingest.settle()
    rig.ingest.round()
    assert starts(rig)[4:] == [(None, 30), (None, 40)]


def test_what_was_read_for_a_topic_that_was_opened_again_is_dropped(rig: Rig) -> None:
    rig.ingest.round()
    rig.states["sick"] = rig.state("sick")
    rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (10, 20)
    assert starts(rig)[2:] == [(10, 20)]
    rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (20, 30)


def test_what_was_read_ahead_too_long_ago_is_dropped(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may be two rounds old at its commit: the vacuum takes files of which nobody has heard for longer."""
    clock = Clock()
    monkeypatch.setattr(reading_ahead, "time", clock)
    limit_s = ConsumerSettings().batch_timeout_s
    rig.ingest.round()
    clock.now += limit_s
    rig.ingest.round()
    assert starts(rig) == [(0, 0), (10, 10), (20, 20)]
    clock.now += limit_s + 1
    rig.ingest.round()
    assert starts(rig)[3:] == [(20, 20), (30, 30)]
    assert (rig.position("sick"), rig.position("well")) == (30, 30)


def test_a_reading_that_fails_fails_the_next_round_and_not_the_commits_beside_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = rig.runner.read

    def dies(question: ReadBatch, jobs: dict[str, TopicJob]) -> ReadResult:
        if len(rig.runner.seen) == 1:
            rig.runner.seen.append(question)
            raise RuntimeError("a worker has died")
        return read(question, jobs)

    monkeypatch.setattr(rig.runner, "read", dies)
    assert rig.ingest.round().batches == 2
    with pytest.raises(RuntimeError, match="a worker has died"):
        rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (10, 10)
    rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (20, 20)


def test_topics_with_a_job_of_their_own_are_not_read_ahead(tmp_path: Path) -> None:
    rig = Rig(tmp_path, transform="hooks:f")
    rig.ingest.round()
    assert len(rig.runner.seen) == 1
    rig.ingest.close()


class Clock:
    """A clock that stands still but for what is said."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


def test_batches_grow_while_commits_are_slow_and_shrink_without_a_backlog(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    del rig.states["sick"]
    clock, table = Clock(), rig.states["well"].table
    commit, read, taken = table.commit, rig.runner.read, 1.0
    monkeypatch.setattr(rounds, "time", clock)

    def full(question: ReadBatch, jobs: dict[str, TopicJob]) -> ReadResult:
        found = read(question, jobs)
        found.fetch_s, found.asked_bytes = 1.0, question.batch_bytes
        found.batches = [replace(batch, consumed_bytes=int(taken * question.batch_bytes)) for batch in found.batches]
        return found

    def slow(batch: TopicBatch) -> object:
        clock.now += 5.0
        return commit(batch)

    monkeypatch.setattr(rig.runner, "read", full)
    monkeypatch.setattr(table, "commit", slow)
    for _ in range(4):
        rig.ingest.round()
    assert [seen.batch_bytes / 1e6 for seen in rig.runner.seen] == [1, 1, 2, 4, 4]
    taken = 0.4
    for _ in range(4):
        rig.ingest.round()
    assert [seen.batch_bytes / 1e6 for seen in rig.runner.seen][5:] == [4, 4, 2, 1]
