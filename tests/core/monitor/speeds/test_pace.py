"""A topic's pace: a step is followed within seconds, noise, pauses and spikes that come again are not."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgs_core.demo.layout import MONITOR
from kgs_core.model import TopicId, TopicPartition
from kgs_core.monitor.speeds import Measure, PartitionReading, Reading, Window

SHARES = (100_000, 200_000, 50_000, 400_000)
"""Bytes/s of each partition at the load 1."""
Load = Callable[[float], float]


def readings(load: Load, seconds: int, seed: int = 0, deviation: float = 0.0, phase: float = 0.0) -> Iterator[Reading]:
    """A reading a second, `phase` after the full one; records are 10 bytes, and the noise is each partition's own."""
    generator = random.Random(seed)
    written = [0.0] * len(SHARES)
    for second in range(seconds):
        for number, share in enumerate(SHARES):
            factor = max(0.0, generator.gauss(1.0, deviation))
            written[number] += share * factor * sum(load(second + phase + part / 20) for part in range(20)) / 20
        now = second + phase + 1.0
        logs = {
            TopicPartition("t", n): PartitionReading(now, now, TopicId("a"), 1, 0, int(size) // 10, int(size))
            for n, size in enumerate(written)
        }
        yield Reading(now, 0, "here", Measure.LOG_DIRS, logs)


def loads(found: Iterator[Reading], window: Window | None = None) -> Iterator[tuple[float, tuple[float, ...]]]:
    """The time, and for each partition by what load its speed is explained; from the first speed on."""
    window = window or Window(30.0, 10.0)
    for reading in found:
        known = window.add(reading).known
        if known:
            yield (
                reading.time_s,
                tuple(known[TopicPartition("t", n)] / share for n, share in enumerate(SHARES)),
            )


def step(after: float, at_s: float = 60.0) -> Load:
    return lambda t: after if t >= at_s else 1.0


def test_a_partition_whose_load_changes_alone_leaves_the_others_as_they_were():
    """It makes up half of its topic: what the topic has gained is not what each of the others has."""

    def hot() -> Iterator[Reading]:
        tp, more = TopicPartition("t", 3), 0
        for each in readings(lambda _: 1.0, 100, deviation=0.05):
            more += 3 * SHARES[3] if each.time_s > 60 else 0
            log = each.partitions[tp]
            log = replace(log, end_offset=log.end_offset + more // 10, size_bytes=log.size_bytes + more)
            yield replace(each, partitions={**each.partitions, tp: log})

    for _, found in ((at, each) for at, each in loads(hot()) if at >= 64.0):
        assert found == pytest.approx((1.0, 1.0, 1.0, 4.0), rel=0.15)


def spikes(t: float) -> float:
    return 4.0 if t >= 60.0 and t % 60.0 < 5.0 else 1.0


@pytest.mark.parametrize("after", [1.2, 2.0, 4.0, 100.0])
@given(phase=st.floats(0.0, 0.99))
def test_a_rise_is_known_within_four_seconds_whenever_it_happens_and_stays_known(after, phase):
    found = {at: each for at, each in loads(readings(step(after), 100, phase=phase)) if at >= 64.0}
    assert all(load == pytest.approx(after, rel=0.05) for each in found.values() for load in each)


def test_noise_of_each_partition_does_not_hide_a_rise_of_the_topic():
    """Known to the partition within what the window leaves of the noise: 30 % / sqrt(30)."""
    late = [
        next(at for at, each in loads(readings(step(4.0), 100, seed, 0.3)) if at > 60 and sum(each) / len(each) > 3.4)
        for seed in range(20)
    ]
    assert sorted(late)[10] <= 64.0, late
    assert max(late) <= 70.0, late


@pytest.mark.parametrize("deviation", [0.1, 0.3])
def test_noise_alone_gives_the_average_of_the_window(deviation):
    """One false alarm in an hour of a topic at most: it would scale the window by what the newest seconds are off."""
    found = list(readings(lambda _: 1.0, 3600, 7, deviation))
    differing = [
        at
        for (at, with_steps), (_, average) in zip(
            loads(iter(found)), loads(iter(found), Window(30.0, 10.0, follows_steps=False)), strict=True
        )
        if with_steps != average
    ]
    assert len([at for before, at in pairwise([-100.0, *differing]) if at - before > 5.0]) <= 1, differing


def test_a_fall_is_known_after_eight_seconds_and_a_pause_of_seven_is_none():
    low = {at: each for at, each in loads(readings(step(0.25), 100)) if at >= 68.0}
    assert all(load == pytest.approx(0.25, rel=0.02) for each in low.values() for load in each)
    paused = list(loads(readings(lambda t: 0.0 if 60.0 <= t < 66.0 else 1.0, 100)))
    assert min(min(each) for _, each in paused) > 0.7


def test_of_spikes_that_come_again_the_first_is_followed_alone():
    highest = [
        max(max(each) for at, each in loads(readings(spikes, 400)) if begin < at <= begin + 60)
        for begin in (60, 120, 180)
    ]
    assert highest[0] == pytest.approx(4.0, rel=0.02)
    assert max(highest[1:]) < 2.0


def test_a_topic_that_begins_is_known_as_soon_as_it_is_no_spike():
    found = [(at, each) for at, each in loads(readings(step(1.0, 0.0), 30)) if at > 10]
    assert all(load == pytest.approx(1.0, rel=0.01) for _, each in found for load in each)
    begun = [each for at, each in loads(readings(lambda t: 1.0 if t >= 60.0 else 0.0, 100)) if at >= 64.0]
    assert all(load == pytest.approx(1.0, rel=0.02) for each in begun for load in each)


def test_logs_that_are_cut_meanwhile_and_topics_whose_brokers_tell_no_sizes_are_followed_too():
    def changed(what: dict[str, object]) -> Iterator[Reading]:
        for each in readings(step(4.0), 80):
            logs = {
                tp: PartitionReading(
                    **{name: getattr(log, name) for name in PartitionReading.__slots__} | what
                    | ({"log_start": log.end_offset // 2, "size_bytes": log.size_bytes // 2} if not what else {})
                )
                for tp, log in each.partitions.items()
            }  # fmt: skip
            yield Reading(each.time_s, 0, "here", Measure.LOG_DIRS, logs)

    for what in ({}, {"size_bytes": None, "bytes_per_record": 10.0}):
        late = [each for at, each in loads(changed(what)) if at >= 64.0]
        assert all(load == pytest.approx(4.0, rel=0.05) for each in late for load in each), what


def test_a_partition_that_comes_or_is_not_read_is_no_step():
    def grown() -> Iterator[Reading]:
        for each in readings(lambda _: 1.0, 100):
            kept = {tp: log for tp, log in each.partitions.items() if tp.partition < 3 or each.time_s > 50}
            if 70 < each.time_s < 75:
                kept.pop(TopicPartition("t", 0))
            unknown = {TopicPartition("t", 0): "no answer"} if TopicPartition("t", 0) not in kept else {}
            yield Reading(each.time_s, 0, "here", Measure.LOG_DIRS, kept, unknown)

    window = Window(30.0, 10.0)
    for reading in grown():
        for tp, speed in window.add(reading).known.items():
            assert speed == pytest.approx(SHARES[tp.partition], rel=0.01), reading.time_s


@pytest.mark.parametrize("seconds", [1, 15])
def test_a_step_stays_known_while_a_broker_is_silent(seconds):
    silent = TopicPartition("t", 0)

    def read() -> Iterator[Reading]:
        for each in readings(step(4.0), 100):
            kept = {tp: log for tp, log in each.partitions.items() if tp != silent}
            missed = replace(each, partitions=kept, unknown={silent: "no answer"})
            yield missed if 66 < each.time_s <= 66 + seconds else each

    window = Window(30.0, 10.0)
    for reading in read():
        known = window.add(reading).known
        if reading.time_s >= 64:
            assert {tp: speed / SHARES[tp.partition] for tp, speed in known.items()} == pytest.approx(
                dict.fromkeys(known, 4.0), rel=0.05
            )


def test_a_window_that_is_rebuilt_after_a_step_knows_it():
    found = list(readings(step(4.0), 75))
    window = Window(30.0, 10.0)
    for reading in found[44:74]:
        window.take(reading)
    known = window.add(found[74]).known
    assert [known[TopicPartition("t", n)] for n in range(4)] == pytest.approx([4 * share for share in SHARES], rel=0.01)


def cut_and_missed(found: Iterator[Reading], missed: set[int], cut: int) -> Iterator[Reading]:
    """Without these readings, but two in a row; retention takes three quarters of each log at every `cut`th."""
    starts = dict.fromkeys((TopicPartition("t", n) for n in range(len(SHARES))), 0)
    for number, each in enumerate(found):
        if cut and number % cut == 0:
            starts = {tp: log.end_offset * 3 // 4 for tp, log in each.partitions.items()}
        logs = {
            tp: replace(log, log_start=starts[tp], size_bytes=log.size_bytes - 10 * starts[tp])
            for tp, log in each.partitions.items()
        }
        if number not in missed or number - 1 in missed:
            yield replace(each, partitions=logs)


@given(
    st.lists(st.tuples(st.floats(0.05, 20.0), st.floats(31.0, 45.0)), min_size=2, max_size=4),
    st.sets(st.integers(0, 200), max_size=20),
    st.integers(0, 40),
)
@example([(0.125, 31.5), (10.0, 31.0)], {15}, 0)
def test_whatever_the_load_does_it_is_known_four_seconds_after_a_rise_and_nine_after_a_fall(levels, missed, cut):
    """The judge knows the levels. A reading that is missing is one second more."""
    changes, ends = [], 0.0
    for level, lasts_s in levels:
        changes.append((ends, level))
        ends += lasts_s

    def load(t: float) -> float:
        return next(level for begins, level in reversed(changes) if begins <= t)

    for time_s, found in loads(cut_and_missed(readings(load, int(ends)), missed, cut)):
        begins, level = next((b, each) for b, each in reversed(changes) if b < time_s)
        before = next((each for b, each in reversed(changes) if b < begins), level)
        steps = abs(level - before) > 0.16 * before
        known_after = 30.0 if not steps else 4.0 if level > before else 9.0
        if time_s - begins > known_after + len([n for n in missed if begins <= n <= time_s]):
            assert found == pytest.approx((level,) * len(SHARES), rel=0.05), (time_s, changes)


def test_the_demonstrations_window_holds_enough_readings_of_dagsters_sensor_to_follow_a_step():
    """It measures a little less often than once a second: as a window that is shorter by that, once a second."""
    window = Window(MONITOR["window_s"] / 1.1, 5.0)
    found = dict(loads(readings(step(2.0), 66, deviation=0.05), window))
    assert found[65.0] == pytest.approx((2.0, 2.0, 2.0, 2.0), rel=0.1)
