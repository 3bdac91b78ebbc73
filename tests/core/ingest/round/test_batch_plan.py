"""Which topic is read next, and how far."""

from hypothesis import given
from hypothesis import strategies as st

from kgs_core.ingest.round.batch_plan import PlannedRead, UnreadRecords, choose
from kgs_core.model import OffsetRange


def waiting(topic="t", positions=None, ends=None, *, since=0.0, bytes_per_record=100.0):
    positions = {0: 0} if positions is None else positions
    return UnreadRecords(topic, positions, {0: 10} if ends is None else ends, since, bytes_per_record)


POSITIONS = st.dictionaries(st.integers(0, 20), st.integers(0, 1000), min_size=1, max_size=8)


@st.composite
def backlogs(draw, topic="t"):
    positions = draw(POSITIONS)
    ends = {p: position + draw(st.integers(-5, 500)) for p, position in positions.items() if draw(st.integers(0, 9))}
    return UnreadRecords(topic, positions, ends, draw(st.floats(0, 100)), draw(st.floats(0, 1e6)))


def test_topic_with_less_than_a_batch_waits_for_its_time():
    w = waiting(since=10.0)
    assert choose([w], 10_000, 2, 11.9) is None
    assert choose([w], 10_000, 2, 12.0) == PlannedRead("t", {0: OffsetRange(0, 10)})


def test_full_batch_is_read_at_once_and_is_cut_to_size():
    plan = choose([waiting(ends={0: 1000})], 5_000, 100, 0)
    assert plan == PlannedRead("t", {0: OffsetRange(0, 50)})


def test_small_backlogs_are_read_whole_and_large_ones_share_the_rest():
    w = waiting(positions={0: 0, 1: 0, 2: 7}, ends={0: 1000, 1: 1000, 2: 11})
    plan = choose([w], 10_400, 1, 5)
    assert plan == PlannedRead("t", {0: OffsetRange(0, 50), 1: OffsetRange(0, 50), 2: OffsetRange(7, 11)})


@given(st.lists(backlogs(), max_size=4), st.integers(1_000, 1_000_000), st.floats(0, 60), st.floats(0, 1000))
def test_plan_stays_within_the_ends_and_the_size(backlog, batch_bytes, wait_s, now):
    named = [UnreadRecords(f"t{n}", w.positions, w.ends, w.since, w.bytes_per_record) for n, w in enumerate(backlog)]
    plan = choose(named, batch_bytes, wait_s, now)
    if plan is None:
        assert all(not w.records or now - w.since < wait_s for w in named)
        return
    w = next(w for w in named if w.topic == plan.topic)
    assert plan.ranges.keys() == w.positions.keys()
    for p, (start, end) in plan.ranges.items():
        assert start == w.positions[p]
        assert start <= end <= max(start, w.ends.get(p, 0))
    records = sum(end - start for start, end in plan.ranges.values())
    assert records >= 1  # a batch that is chosen moves
    # rounding up gives each partition at most one record more than its part
    assert records <= max(1, batch_bytes / max(w.bytes_per_record, 1.0)) + len(plan.ranges)


@given(st.lists(st.tuples(st.integers(1, 5000), st.floats(0, 5)), min_size=1, max_size=6))
def test_no_topic_waits_for_ever_behind_hot_ones(topics):
    """A hot topic has a full batch again as soon as one is read."""
    now, wait_s, since = 10.0, 1.0, {f"t{n}": s for n, (_, s) in enumerate(topics)}
    since["hot"] = now
    sizes = {f"t{n}": size for n, (size, _) in enumerate(topics)} | {"hot": 10**6}
    quiet = set(sizes) - {"hot"}
    for _ in range(20 * len(sizes)):
        now += 0.5
        every = [waiting(t, ends={0: size}, since=since[t]) for t, size in sizes.items()]
        plan = choose(every, 100_000, wait_s, now)
        assert plan is not None
        quiet.discard(plan.topic)
        since[plan.topic] = now
    assert quiet == set()
