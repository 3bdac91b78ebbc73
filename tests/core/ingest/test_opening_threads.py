"""Openings that come back, late or never: what begins beside them, what is said of them, and when it is enough."""

import os
import threading
import time

import pytest

from kgs_core.errors import TransientError
from kgs_core.ingest.opening import opening_threads, owned_topics
from kgs_core.ingest.opening.opening_threads import LASTS, LATE, Opening, OpeningThreads
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.model import TopicId, TopicPartition
from tests.core.ingest.test_owned_topics import MemoryKafka, consumer, share
from tests.waiting import wait_until

FOUND = TopicDescription(TopicId("id"), 1)
T1 = TopicPartition("t1", 0)


class Table:
    """A table that says nothing before `answers`."""

    def __init__(self):
        self.answers = threading.Event()
        self.is_asked = threading.Event()

    def __call__(self):
        self.is_asked.set()
        assert self.answers.wait(60)
        return self


@pytest.fixture
def tables():
    made = []

    def make(count):
        made.extend(Table() for _ in range(count))
        return made[-count:]

    yield make
    for table in made:
        table.answers.set()


def begin(threads, tables):
    for number, table in enumerate(tables):
        threads.begin(Opening(f"t{number}", FOUND, frozenset(), table))


def asked(tables):
    return [table.is_asked.is_set() for table in tables]


def test_so_many_are_at_work_and_no_more_and_each_makes_room_for_the_next(tables, monkeypatch):
    monkeypatch.setattr(opening_threads, "SIDE_BY_SIDE", 2)
    threads, made = OpeningThreads(), tables(3)
    begin(threads, made)
    assert made[1].is_asked.wait(30)
    assert asked(made) == [True, True, False]
    made[0].answers.set()
    assert made[2].is_asked.wait(30)
    assert [opening.topic for opening in threads.taken(0.0)] == ["t0"]
    assert threads.taken(0.0) == [], "each once"


def test_one_that_waits_and_is_wanted_no_longer_is_not_begun(tables, monkeypatch):
    monkeypatch.setattr(opening_threads, "SIDE_BY_SIDE", 1)
    threads, made = OpeningThreads(), tables(3)
    begin(threads, made)
    threads.let_go(frozenset(), {"t0", "t2"})
    made[0].answers.set()
    assert made[2].is_asked.wait(30)
    assert not made[1].is_asked.is_set()


def test_those_that_hang_make_room_for_others_and_the_process_ends_only_where_none_is_left(tables, monkeypatch):
    monkeypatch.setattr(opening_threads, "SIDE_BY_SIDE", 1)
    monkeypatch.setattr(opening_threads, "MOST", 2)
    monkeypatch.setattr(opening_threads, "LATE_S", 0.0)
    threads, made = OpeningThreads(), tables(3)
    begin(threads, made)
    assert made[1].is_asked.wait(30)
    assert [opening.is_over for opening in threads.taken(0.0)][:2] == [False, False]
    later = time.monotonic() + 60
    assert "2 openings of topics do not come back" in (threads.stuck_reason(later, 30.0) or "")
    assert threads.stuck_reason(time.monotonic(), 30.0) is None
    made[0].answers.set()
    assert made[2].is_asked.wait(30)
    assert threads.stuck_reason(later + 1000, 30.0) is None, "nothing waits"


def test_topic_has_two_tries_that_do_not_come_back_and_no_third_beside_them(tables, monkeypatch):
    monkeypatch.setattr(opening_threads, "LATE_S", 0.0)
    threads, made = OpeningThreads(), tables(2)
    for number, table in enumerate(made):
        assert threads.may_begin("t0")
        threads.begin(Opening("t0", FOUND, frozenset(), table))
        assert not threads.may_begin("t0"), "one at a time"
        assert len(threads.taken(0.0)) == 1, number
    assert not threads.may_begin("t0")
    made[0].answers.set()
    wait_until(lambda: threads.may_begin("t0"), 30, "one has come back")


def test_end_waits_for_what_is_at_work_and_begins_nothing(tables, monkeypatch):
    monkeypatch.setattr(opening_threads, "SIDE_BY_SIDE", 1)
    threads, made = OpeningThreads(), tables(2)
    begin(threads, made)
    made[0].answers.set()
    threads.close()
    assert threads.is_idle
    assert not made[1].is_asked.is_set()


def test_end_does_not_wait_for_what_hangs(tables, monkeypatch, caplog):
    monkeypatch.setattr(opening_threads, "END_S", 0.1)
    threads = OpeningThreads()
    begin(threads, tables(1))
    threads.close()
    assert "still being opened: t0" in caplog.text


@pytest.fixture
def topics(tmp_path):
    return consumer(MemoryKafka("t1", "t2"), tmp_path)


def test_opening_that_lasts_is_said_and_one_that_hangs_is_tried_again_beside_it(topics, tables, monkeypatch, caplog):
    (hung,) = tables(1)
    opened = TopicOpener.open
    tries = []

    def open_(opener, spec, *more):
        tries.append(spec.topic)
        return hung() if tries == ["t1"] else opened(opener, spec, *more)

    monkeypatch.setattr(TopicOpener, "open", open_)
    monkeypatch.setattr(owned_topics, "PATIENCE_S", 0.0)
    ours = share(t1=[0])
    topics.refresh({"t1"}, ours)
    assert topics.reasons({T1}) == {}, "no news yet"
    monkeypatch.setattr(opening_threads, "LASTS_S", 0.0)
    assert topics.reasons({T1}) == {T1: LASTS}
    monkeypatch.setattr(opening_threads, "LATE_S", 0.0)
    topics.take_in(ours)
    assert LATE in topics.reasons({T1})[T1]
    assert "in open_" in caplog.text, "where it hangs"
    monkeypatch.setattr(opening_threads, "LATE_S", 60.0)
    assert "t1" in topics.retries._at

    def tried_again():
        topics.retry(ours)
        topics.take_in(ours, 1.0)
        return topics.positions() == {T1: 0}

    wait_until(tried_again, 30, "read")
    assert tries == ["t1", "t1"]
    there = topics.states["t1"]
    hung.answers.set()
    wait_until(lambda: topics.threads.is_idle, 30, "the first one came back")
    topics.take_in(ours)
    assert topics.states["t1"] is there, "and is not heeded"


def test_trouble_that_may_pass_is_tried_again_each_time_later(topics, monkeypatch):
    tries = []

    def open_(*_):
        tries.append(time.monotonic())
        raise TransientError("the store does not answer", 100.0)

    monkeypatch.setattr(TopicOpener, "open", open_)
    for waits_s in (100, 200, 400):
        topics.refresh({"t1"}, share(t1=[0]))
        assert waits_s - 1 < topics.retries._at["t1"] - tries[-1] < waits_s + 30
    assert topics.reasons({T1}) == {T1: "the store does not answer"}
    topics.retry(share(t1=[0]))
    assert len(tries) == 3, "not due"


def test_table_that_does_not_say_where_it_stands_keeps_its_topic_out_of_the_rounds(topics, tables, monkeypatch):
    """Its handle is for one thread at a time."""
    topics.refresh({"t1"}, share())
    state, (hung,) = topics.states["t1"], tables(1)
    found = state.table.positions(frozenset({0}))

    def positions(_):
        hung()
        return found

    monkeypatch.setattr(state.table, "positions", positions)
    assert topics.own("t1", frozenset({0}), share(t1=[0]))
    topics.take_in(share(t1=[0]))
    assert (state.is_at_work, topics.positions()) == (True, {})
    hung.answers.set()
    topics.take_in(share(t1=[0]), 30.0)
    assert (state.is_at_work, topics.positions()) == (False, {T1: 0})


def test_what_is_read_is_left_alone_for_as_long_as_a_batch_takes_to_fill(topics, tables, monkeypatch):
    """With every round one topic more, 500 topics committed nothing before the last of them was open."""
    (slow,) = tables(1)
    opened = TopicOpener.open
    ours = share(t1=[0], t2=[0])
    monkeypatch.setattr(owned_topics, "PATIENCE_S", 0.2)
    monkeypatch.setattr(TopicOpener, "open", lambda o, s, *m: (s.topic == "t2" and slow(), opened(o, s, *m))[1])
    topics.refresh({"t1"}, ours)
    wait_until(lambda: topics.take_in(ours, 1.0) or topics.positions() == {T1: 0}, 30, "open")
    topics.refresh({"t1", "t2"}, ours)
    monkeypatch.setattr(topics.threads, "_calm_until", time.monotonic() + 3600)
    slow.answers.set()
    wait_until(lambda: topics.threads.is_idle, 30, "the other one is open")
    topics.take_in(ours)
    assert topics.positions() == {T1: 0}
    monkeypatch.setattr(topics.threads, "_calm_until", 0.0)
    topics.take_in(ours)
    assert len(topics.positions()) == 2
    assert topics.threads._calm_until > time.monotonic(), "from then on again"


def test_one_that_hangs_is_left_behind_where_nothing_shows_where_and_no_file_stays_open(tables, monkeypatch):
    (hung,) = tables(1)
    monkeypatch.setattr(opening_threads, "LATE_S", 0.0)

    def left_behind():
        threads = OpeningThreads()
        begin(threads, [hung])
        return threads.taken(0.0)

    before = len(os.listdir("/proc/self/fd"))
    assert len(left_behind()) == 1
    assert len(os.listdir("/proc/self/fd")) == before
    monkeypatch.setattr(os, "memfd_create", lambda _: os.open("/no/such/file", os.O_RDONLY))
    assert len(left_behind()) == 1
