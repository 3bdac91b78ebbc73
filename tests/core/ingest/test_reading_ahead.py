"""The driver of rounds reads the next batch while it commits one, and lets batches grow: real tables, fake reader."""

import threading
from dataclasses import replace

import pytest

from kgs_core.config.settings import ConsumerSettings
from kgs_core.ingest.driver import reading_ahead, rounds
from kgs_core.model import TopicPartition

PATIENCE_S = 30.0


def starts(rig):
    """Where each reading began, of `sick` and `well`."""
    sick, well = (TopicPartition(topic, 0) for topic in ("sick", "well"))
    return [(seen.start.get(sick), seen.start.get(well)) for seen in rig.runner.seen]


def test_the_next_batch_is_read_while_one_is_committed_and_committed_by_the_next_round(rig, monkeypatch):
    table, read, is_ahead = rig.states["well"].table, rig.runner.read, threading.Event()
    commit = table.commit

    def seen(question, jobs):
        if question.start[TopicPartition("well", 0)] == 10:
            is_ahead.set()
        return read(question, jobs)

    def waiting(batch):
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


def test_nothing_is_read_ahead_once_an_assignment_or_a_signal_waits(rig):
    """It would be dropped, and the end of the round would wait for it."""
    rig.ingest.round(lambda: True)
    assert (rig.position("sick"), rig.position("well")) == (10, 10)
    assert starts(rig) == [(0, 0)]
    rig.ingest.round()
    assert starts(rig) == [(0, 0), (10, 10), (20, 20)]


def test_what_is_let_go_drops_what_was_read_ahead_of_its_topic_alone(rig):
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


def test_what_was_read_for_a_topic_that_was_opened_again_is_dropped(rig):
    rig.ingest.round()
    rig.states["sick"] = rig.state("sick")
    rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (10, 20)
    assert starts(rig)[2:] == [(10, 20)]
    rig.ingest.round()
    assert (rig.position("sick"), rig.position("well")) == (20, 30)


def test_what_was_read_ahead_too_long_ago_is_dropped(rig, monkeypatch):
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


def test_a_reading_that_fails_fails_the_next_round_and_not_the_commits_beside_it(rig, monkeypatch):
    read = rig.runner.read

    def dies(question, jobs):
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


class Clock:
    """A clock that stands still but for what is said."""

    now = 0.0

    def monotonic(self):
        return self.now

    def time(self):
        return self.now


def test_batches_grow_while_commits_are_slow_and_shrink_without_a_backlog(rig, monkeypatch):
    del rig.states["sick"]
    clock, table = Clock(), rig.states["well"].table
    commit, read, taken = table.commit, rig.runner.read, 1.0
    monkeypatch.setattr(rounds, "time", clock)

    def full(question, jobs):
        found = read(question, jobs)
        found.fetch_s, found.asked_bytes = 1.0, question.batch_bytes
        found.batches = [replace(batch, consumed_bytes=int(taken * question.batch_bytes)) for batch in found.batches]
        return found

    def slow(batch):
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
