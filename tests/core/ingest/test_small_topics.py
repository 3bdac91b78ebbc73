"""Topics of which little comes beside busy ones: not a file of each in every batch, and none waits for too long."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from confluent_kafka.cimpl import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.ingest.fetch import fetch_client
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.ingest.fetch.small_topics import LARGE_SHARE, can_wait, taking_order
from kgs_core.kafka.client_config import reading_client
from kgs_core.model import TopicPartition
from tests.object_fetch import ObjectFetchSession

NUMBER = itertools.count()
WAIT_S = 1.0
POLL_S = fetch_client.POLL_S
SIZES = (
    st.lists(st.integers(0, 5000), min_size=1, max_size=300).filter(any).map(lambda sizes: np.array(sizes, np.int64))
)


@given(SIZES)
def test_at_least_half_of_a_full_batch_goes_and_who_waits_is_smaller_than_whoever_goes(sizes):
    waits = can_wait(sizes, int(sizes.sum()))
    assert 2 * sizes[waits].sum() <= sizes.sum()
    assert not waits.all()
    assert (sizes[waits] * LARGE_SHARE < sizes.sum()).all()
    if waits.any():
        assert sizes[waits].max() <= sizes[~waits].min()


EVENTS = st.lists(st.tuples(st.integers(-1, 9), st.integers(0, 5000)), max_size=200)


@given(EVENTS, st.integers(1, 100_000), st.booleans())
def test_events_of_a_topic_keep_their_order_and_either_all_may_go_or_none(events, batch_bytes, is_due):
    topics, sizes = (np.array([event[i] for event in events], np.int64) for i in (0, 1))
    if not is_due:
        sizes[: len(sizes)] += 1  # a full batch is not empty
    order, most = taking_order(topics, sizes, batch_bytes, is_due=is_due)
    order = np.arange(len(events)) if order is None else order
    assert sorted(order) == list(range(len(events)))
    for topic in set(topics) - {-1}:
        mine = [n for n in order if topics[n] == topic]
        assert mine == sorted(mine)
        assert len({n in order[:most] for n in mine}) == 1
    assert all(n in order[:most] for n in np.flatnonzero(topics == -1)), "who has no topic is a problem to be told of"
    assert most == len(events) or not is_due


def test_what_a_batch_that_is_due_leaves_is_of_the_largest_topic():
    order, most = taking_order(np.array([0, 0, 1, 2, -1]), np.array([50, 50, 10, 20, 0]), 100, is_due=True)
    assert (order.tolist(), most) == ([4, 2, 3, 0, 1] if order[0] == 4 else [2, 4, 3, 0, 1], 5)


class Feed:
    """librdkafka's side and the clock: what comes of each topic is a list of (when, bytes).

    Attributes:
        fetch_s: topic -> how long after its assignment its first records come.
    """

    def __init__(self, logs):
        self.logs = {topic: sorted(log) for topic, log in logs.items()}
        self.at = {}
        self.assigned = {}
        self.fetch_s = {}
        self.now = 0.0

    def assign(self, positions):
        self.at = {}
        self.incremental_assign(positions)

    def incremental_assign(self, positions):
        assert not {p.topic for p in positions} & self.at.keys()
        self.at |= {p.topic: p.offset for p in positions}
        self.assigned |= {p.topic: self.now for p in positions}

    def incremental_unassign(self, positions):
        for position in positions:
            del self.at[position.topic]

    def list_topics(self, *_, **__):
        pass

    def consume(self, count, timeout_s):
        there = self.arrived(self.now + timeout_s)
        if len(there) < count:
            self.now += timeout_s + 1e-6  # a clock that stands still for a rounding would end no loop
        found = there[:count]
        for topic, offset, _ in found:
            self.at[topic] = offset + 1
        return [Message(topic=topic, partition=0, offset=offset, value=b"x" * size) for topic, offset, size in found]

    def arrived(self, until):
        found = [
            (there, topic, offset, size)
            for topic, at in self.at.items()
            for offset, (when, size) in enumerate(self.logs[topic])
            if offset >= at and (there := max(when, self.assigned[topic] + self.fetch_s.get(topic, 0))) <= until
        ]
        return [event[1:] for event in sorted(found)]


class Run:
    """Rounds at once one after the other, each committed; `batches` has when, and what was taken of each topic."""

    def __init__(self, logs, batch_bytes):
        self.feed = Feed(logs)
        self.batch_bytes = batch_bytes
        self.positions = {TopicPartition(topic, 0): 0 for topic in logs}
        self.batches = []
        self.session = object.__new__(ObjectFetchSession)
        empty = {
            "_next": {},
            "_gathering_since": None,
            "_record_bytes": 100.0,
            "_are_small_waiting": False,
            "_passed_bytes": 0,
            "_waited_s": 0.0,
        }
        self.session.__dict__ |= {**empty, "_consumer": self.feed, "_client": self.feed}
        self.session._drop_held()

    def until(self, end_s):
        clock = SimpleNamespace(monotonic=lambda: self.feed.now, process_time=lambda: 0.0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fetch_client, "time", clock)
            while self.feed.now < end_s:
                self.round()
        return self

    def round(self):
        fetched = self.session.gather(self.positions, self.batch_bytes, WAIT_S, 0.5)
        for tp, span in fetched.ranges.items():
            assert span.start == self.positions[tp]
            records = fetched.of(tp.topic)
            assert records.offsets.tolist() == list(range(*span))
            self.positions[tp] = span.end
        self.feed.now += 0.001
        if fetched.ranges:
            self.batches.append((self.feed.now, {tp.topic: span for tp, span in fetched.ranges.items()}))
            assert fetched.consumed_bytes <= self.batch_bytes


def times_of(topic, run):
    return [when for when, spans in run.batches if topic in spans]


def every(seconds, size, end_s):
    return [(n * seconds, size) for n in range(int(end_s / seconds))]


LOGS = st.fixed_dictionaries(
    {
        "busy": st.integers(1, 100).map(lambda n: every(0.001 * n, 500, 4.0)),
        **{f"t{i}": st.lists(st.tuples(st.floats(0, 4), st.integers(0, 20)), max_size=8) for i in range(5)},
    }
)


@settings(max_examples=40)
@given(LOGS)
def test_every_record_is_read_once_and_a_small_topic_waits_no_longer_than_it_may(logs):
    run = Run(logs, 5000).until(8.0)
    assert run.positions == {TopicPartition(topic, 0): len(log) for topic, log in logs.items()}
    for when, spans in run.batches:
        for topic, span in spans.items():
            if topic != "busy":
                waited = when - run.feed.logs[topic][span.start][0]
                assert waited <= WAIT_S + 2 * POLL_S
    for topic in set(logs) - {"busy"}:
        times = times_of(topic, run)
        assert len(times) <= 8 / WAIT_S + 1


def test_positions_that_move_again_and_again_do_not_make_small_topics_wait_for_ever():
    """Each time all that is held is dropped, and read again."""
    run = Run({"busy": every(0.001, 100, 10.0), "small": [(0.01, 1)], "other": []}, 10_000)
    whole = dict(run.positions)
    for n in range(30):
        left_out = {TopicPartition("other", 0)} if n % 2 else set()
        run.positions = {tp: run.positions.get(tp, at) for tp, at in whole.items() if tp not in left_out}
        run.until(run.feed.now + 0.1)
    (taken,) = times_of("small", run)
    assert taken <= WAIT_S + 0.2


def test_a_table_that_is_late_again_and_again_does_not_make_small_topics_wait_for_longer():
    """Each time all that was held was dropped, came again behind the busy topic's, and had its time begin anew."""
    run = Run({"busy": every(0.001, 100, 10.0), "small": [(0.01, 1)], "late": every(0.05, 10, 10.0)}, 10_000)
    run.feed.fetch_s = {"small": 0.3}
    late = TopicPartition("late", 0)
    for n in range(16):
        position = run.positions.pop(late, 0) if n % 2 else 0
        run.until(run.feed.now + 0.5)
        run.positions.setdefault(late, position)
    (taken,) = times_of("small", run)
    assert taken <= WAIT_S + 0.5
    assert run.positions[late] > 0


TURNS = st.lists(st.tuples(st.sampled_from(["busy", "t0", "t1"]), st.sampled_from(["out", "in", "back"])), max_size=20)


@settings(max_examples=60)
@given(LOGS, TURNS)
def test_every_record_is_read_once_also_where_partitions_come_and_go_and_batches_are_dropped(logs, turns):
    """`back`: a batch did not land, and is read again."""
    run, out = Run(logs, 5000), {}
    run.feed.fetch_s = dict.fromkeys(logs, 0.02)
    for topic, what in turns:
        tp = TopicPartition(topic, 0)
        run.until(run.feed.now + 0.2)
        if what == "out" and tp in run.positions:
            out[tp] = run.positions.pop(tp)
        elif what == "in" and tp in out:
            run.positions[tp] = out.pop(tp)
        elif what == "back" and tp in run.positions:
            run.positions[tp] = run.positions[tp] // 2
    run.positions |= out
    run.until(run.feed.now + 8.0)
    assert run.positions == {TopicPartition(topic, 0): len(log) for topic, log in logs.items()}


def test_what_waits_stays_where_it_is_and_comes_whole_when_it_is_due(kafka):
    """With the real client, whose held messages are moved."""
    busy, *small = topics = [f"{name}-{next(NUMBER)}" for name in ("busy", "a", "b", "c")]
    for topic in topics:
        kafka.topic(topic)
    for n in range(60):
        for topic in small:
            kafka.produce(topic, b"%d" % n)
        for _ in range(5):
            kafka.produce(busy, b"x" * 1000)
    kafka.flush()
    session = NativeFetchSession(reading_client(kafka.settings()))
    start = {TopicPartition(topic, 0): 0 for topic in topics}
    try:
        batches = []
        while start[TopicPartition(busy, 0)] < 260:
            fetched = session.gather(start, 30_000, 3600, 3600)
            batches.append(set(fetched.topics))
            start |= {tp: span.end for tp, span in fetched.ranges.items()}
        assert batches == [{busy}] * len(batches)
        values = {topic: [] for topic in topics}
        while any(start[TopicPartition(topic, 0)] < 60 for topic in small):
            fetched = session.gather(start, 1 << 20, 0.2, 3.0)
            for topic, records in fetched.topics.items():
                values[topic] += records.values.to_pylist()
            start |= {tp: span.end for tp, span in fetched.ranges.items()}
        assert all(values[topic] == [b"%d" % n for n in range(60)] for topic in small)
    finally:
        session.close()
