"""What a window says of readings that go well, go wrong, or are missing."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.errors import MeasurementError
from kgs_core.model import TopicId, TopicPartition
from kgs_core.monitor.speeds import Measure, PartitionReading, PartitionSpeed, Reading, Verdict, Window

OTHER = TopicPartition("t", 1)


M, S, U, C = Verdict.MEASURED, Verdict.SHRUNK, Verdict.UNKNOWN, Verdict.CONTRADICTION
CUT = [0 if t < 20 else 15_000 for t in range(31)]
STANDS_STILL = "11000 new offsets, and the size stays 5000 bytes"


@pytest.mark.parametrize(
    ("logs", "verdict", "bytes_per_s", "reason"),
    [
        ([{"end": 1000 * t} for t in range(60)], M, 100_000.0, ""),
        ([{"end": 7} for t in range(12)], M, 0.0, ""),
        ([{"end": max(0, t - 40) * 1000} for t in range(56)], M, 50_000.0, ""),
        ([{"end": max(0, t - 40) * 1000} for t in range(71)], M, 100_000.0, ""),
        ([{"end": 1000 * t, "start": start} for t, start in enumerate(CUT)], S, 100_000.0, None),
        ([{"end": 1000 * t, "start": start, **({"size": 2_000_000} if t == 20 else {})} for t, start in enumerate(CUT)],
         S, 100_000.0, None),
        ([{"end": 1000 * t, "start": max(0, 1000 * (t - 3))} for t in range(1, 32)], S, 100_000.0, None),
        ([{"end": 1000 * t, "size": 100_000 * t - (1_500_000 if t >= 20 else 0)} for t in range(31)],
         S, 100_000.0, None),
        ([{"end": 1000, "start": 0 if t < 5 else 1000, "size": 100_000 if t < 5 else 0} for t in range(12)],
         S, 0.0, "the log was cut: no new record"),
        ([{"end": 1000 * t, "start": 1000 * t, "size": 0} for t in range(12)],
         U, None, "the log was cut: and nothing tells the size of its records"),
        ([{"end": 5000, "start": 1000 if t < 12 else 500} for t in range(13)], C, None, None),
        ([{"end": 5, "start": 9}], C, None, "the log ends at 5, before its start 9"),
        ([{"end": 5, "start": -1, "size": 500}], C, None, "negative: start -1, size 500"),
        ([{"end": 5, "size": -500}], C, None, "negative: start 0, size -500"),
        ([{"end": 1000 * t, "size": 5000} for t in range(12)], C, None, STANDS_STILL),
        ([{"end": 900 if t < 6 else 1000, "size": 5000} for t in range(12)], M, 0.0, ""),
        ([{"end": 1000 * t, "size": None, "bytes_per_record": 80.0} for t in range(12)],
         Verdict.ESTIMATED, 80_000.0, "from a sample: 11000 records of 80 bytes"),
        ([{"end": 1000 * t, "size": None} for t in range(12)], U, None, None),
        ([{"end": 1000, "size": None} for t in range(12)], Verdict.ESTIMATED, 0.0, None),
    ],
    ids=[
        "growth over the window",
        "an idle partition is measured as zero",
        "any query older than 30 seconds is removed, Landau 2022, section Monitor",
        "the first reading of the window counts and none before",
        "after retention by new offsets and the size of a record",
        "the size is read first: at 20 s it still has what the log's start says is gone",
        "retention at every reading leaves the size of the whole log's records",
        "compaction shrinks without moving the start",
        "deleted whole, and not written",
        "records that come and go between two readings are no number",
        "a log start that goes back",
        "a log that ends before its start",
        "a negative start",
        "a negative size",
        "records that come while the size stands still",
        "a follower catches up: the leader had the records, and their size, all the time",
        "offsets alone give an estimate",
        "offsets without a sample give no number",
        "but for no record",
    ],
)  # fmt: skip
def test_the_last_speed_after_a_reading_a_second(log, speeds_of, logs, verdict, bytes_per_s, reason):
    window = Window(30.0, 10.0, follows_steps=False)
    last = speeds_of([log(t, **each) for t, each in enumerate(logs)], window)[-1]
    assert last.verdict is verdict
    assert last.bytes_per_s == (None if bytes_per_s is None else pytest.approx(bytes_per_s))
    assert reason in (None, last.reason)


def test_speed_is_unknown_until_readings_lie_far_enough_apart(log, speeds_of):
    speeds = speeds_of([log(t, end=1000 * t) for t in range(12)])
    assert [s.verdict for s in speeds] == [Verdict.UNKNOWN] * 10 + [Verdict.MEASURED] * 2
    assert speeds[9] == PartitionSpeed(Verdict.UNKNOWN, None, "a new window: 10 readings in 9 of 10 s")
    assert {s.bytes_per_s for s in speeds[:10]} == {None}


def test_records_whose_size_did_not_show_before_the_cut_are_not_taken_for_empty(log, speeds_of):
    """Four came while the size stayed 200; the logs had 100, 50, 33 and 100 bytes a record: 6 of 75 in 18 s."""
    seen = [log(6 * n, end=2 * (n + 1), size=200) for n in range(3)]
    last = speeds_of([*seen, log(18, end=8, start=5, size=300)])[-1]
    assert last == PartitionSpeed(Verdict.SHRUNK, 25.0, "the log was cut: 6 records of 75 bytes")


@pytest.mark.parametrize("cut_every_s", [1, 4])
def test_offsets_that_are_read_late_do_not_make_records_larger_or_smaller(speeds_of, cut_every_s):
    """A busy machine: sizes are read at once, the end offsets up to half a second later."""
    logs = []
    for t in range(1, 32):
        late = (0.5, 0.0, 0.3, 0.1)[t % 4]
        start = max(0, 1000 * (t - t % cut_every_s - 6))
        end = round(1000 * (t + late))
        logs.append(PartitionReading(t, t + late, TopicId("one"), 1, start, end, 100 * (1000 * t - start)))
    last = speeds_of(logs)[-1]
    assert last.verdict is Verdict.SHRUNK
    assert last.bytes_per_s == pytest.approx(100_000, rel=0.02)


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({"leader": 2}, Verdict.RESTARTED, "the leader is now broker 2, before 1"),
        ({"topic_id": TopicId("two")}, Verdict.RECREATED, "the topic was made again: id two, before one"),
        ({"end_offset": 10}, Verdict.TRUNCATED, "the end offset went back from 14000 to 10"),
        ({"size_bytes": None, "bytes_per_record": 90.0}, Verdict.RESTARTED, "measured in another way than before"),
    ],
)
def test_what_breaks_a_log_begins_its_window_anew_and_says_why(log, speeds_of, changes, verdict, words):
    logs = [log(t, end=1000 * t) for t in range(15)] + [
        replace(log(t, end=1000 * t), **changes) if "end_offset" not in changes else log(t, end=10 + t - 15)
        for t in range(15, 27)
    ]
    speeds = speeds_of(logs)
    assert [s.verdict for s in speeds[15:25]] == [verdict] * 10
    assert speeds[15] == PartitionSpeed(verdict, None, f"{words}: 1 readings in 0 of 10 s")
    assert speeds[25].bytes_per_s is not None


def test_only_the_partition_concerned_begins_anew(log, reading, tp):
    window = Window(30.0, 10.0)
    for t in range(15):
        last = window.add(
            reading(t, {tp: log(t, end=1000 * t), OTHER: log(t, end=1000 * t, leader=1 if t < 12 else 2)})
        )
    assert last.speeds[tp] == PartitionSpeed(Verdict.MEASURED, 100_000.0)
    assert last.speeds[OTHER].verdict is Verdict.RESTARTED
    assert last.known == {tp: 100_000.0}
    assert last.total_bytes_per_s == 100_000.0


@pytest.fixture
def filled(log, reading):
    """A window after 15 readings, one a second."""
    window = Window(30.0, 10.0)
    for t in range(15):
        window.add(reading(t, log(t, end=1000 * t)))
    return window


def test_a_partition_not_read_is_unknown_and_bridged_afterwards(filled, log, reading, tp):
    missed = filled.add(reading(15, unknown={tp: "broker 1 did not answer"}))
    assert missed.speeds[tp] == PartitionSpeed(Verdict.UNKNOWN, None, "broker 1 did not answer")
    back = filled.add(reading(20, log(20, end=20_000)))
    assert back.speeds[tp] == PartitionSpeed(Verdict.MEASURED, 100_000.0)


def test_a_vanished_partition_is_reported_as_such_and_forgotten_after_a_window(filled, reading, tp):
    gone = [filled.add(reading(t)).speeds.get(tp) for t in range(15, 60)]
    assert gone[0] == PartitionSpeed(Verdict.VANISHED, None, "the partition is no longer there")
    assert gone[29] is not None
    assert gone[30] is None


def test_a_topic_that_comes_back_under_another_id_is_recreated(filled, log, reading, tp):
    filled.add(reading(15))
    back = filled.add(reading(16, log(16, end=0, topic_id=TopicId("two"))))
    assert back.speeds[tp].verdict is Verdict.RECREATED


@pytest.mark.parametrize("time_s", [14.0, 13.5, -3600.0])
def test_time_that_does_not_go_on_is_refused_and_changes_nothing(filled, log, reading, tp, time_s):
    with pytest.raises(MeasurementError, match="not after the last one"):
        filled.add(reading(time_s, log(time_s, end=99_000)))
    jumped = replace(reading(15, log(15, end=15_000)), wall_ms=0)  # a step of the wall clock does not matter
    assert filled.add(jumped).known == {tp: 100_000.0}


def test_how_much_of_the_window_is_filled(filled, log, reading):
    assert (Window().span_s, filled.span_s) == (0, 14)
    filled.add(reading(100, log(100, end=1)))
    assert filled.span_s == 0, "all before is too old"


def test_a_slow_monitor_beside_a_fast_one_looks_like_no_truncation(log, reading, tp):
    """Its end offset was read after the next one's."""
    window = Window(30.0, 10.0)
    for t in range(15):
        window.add(reading(t, log(t, end=1000 * t + 600, size=100_000 * t, offsets_s=t + 0.6)))
        last = window.add(reading(t + 0.5, log(t + 0.5, end=1000 * t + 500, size=100_000 * t + 50_000)))
    assert last.speeds[tp] == PartitionSpeed(Verdict.MEASURED, 100_000.0)


counts = st.integers(0, 2**50)
logs = st.builds(
    PartitionReading,
    st.floats(0, 60),
    st.floats(0, 60),
    st.sampled_from([TopicId("one"), TopicId("two")]),
    st.integers(1, 2),
    counts,
    counts,
    st.none() | counts,
    st.none() | st.floats(0, 1e9),
)


@given(st.lists(st.tuples(logs, st.floats(0, 5)), max_size=40))
def test_no_readings_whatever_give_a_speed_below_zero_or_none_at_all(found):
    window = Window(30.0, 1.0)
    for number, (log, delay) in enumerate(found):
        reading = Reading(
            float(number), 0, "here", Measure.LOG_DIRS, {OTHER: replace(log, time_s=number, offsets_s=number + delay)}
        )
        speed = window.add(reading).speeds[OTHER]
        if speed.bytes_per_s is None:
            assert speed.reason
            assert speed.verdict not in (Verdict.MEASURED, Verdict.ESTIMATED, Verdict.SHRUNK)
        else:
            assert math.isfinite(speed.bytes_per_s)
            assert speed.bytes_per_s >= 0
            assert speed.verdict in (Verdict.MEASURED, Verdict.ESTIMATED, Verdict.SHRUNK)


@given(
    st.integers(0, 10_000),
    st.integers(1, 5000),
    st.lists(st.floats(0.2, 4), min_size=16, max_size=40),
    st.booleans(),
)
def test_linear_growth_is_exact_however_uneven_the_readings(per_s, bytes_per_record, steps, retention):
    """Also under retention, as long as the log was left alone for some of the time."""
    window, now, start = Window(30.0, 3.0), 0.0, 0
    for number, step in enumerate(steps):
        now += step
        end = round(per_s * now)
        start = end // 2 if retention and number == 12 else start
        log = PartitionReading(now, now, TopicId("one"), 1, start, end, (end - start) * bytes_per_record)
        speed = window.add(Reading(now, 0, "here", Measure.LOG_DIRS, {OTHER: log})).speeds[OTHER]
    assert speed.bytes_per_s == pytest.approx(per_s * bytes_per_record, rel=0.01, abs=bytes_per_record)
