"""The load of a measurement: what is not there for a moment is unknown; what was not for a window is gone."""

import pytest

from kgs_core.model import TopicId, TopicPartition
from kgs_core.monitor.kafka.load import bytes_per_offset, measured_load
from kgs_core.monitor.speeds import Measure, PartitionReading, Reading, Window
from tests.configuration import settings_of

HERE, AWAY = TopicPartition("here", 0), TopicPartition("away", 0)


@pytest.fixture
def load_after():
    """The load after a reading a second; `away` is missing, or could not be read, from some second on."""

    def build(seconds, *, missing_from=10**9, unread_from=10**9, pattern=".*"):
        window = Window(30, 10)
        for t in range(seconds):
            there = {HERE, AWAY} if t < min(missing_from, unread_from) else {HERE}
            partitions = {
                tp: PartitionReading(float(t), float(t), TopicId("x"), 1, 0, 10 * t, 1000 * t) for tp in there
            }
            unknown = {AWAY: "broker 2 did not answer"} if t >= unread_from else {}
            measurement = window.add(Reading(float(t), 0, "boot", Measure.LOG_DIRS, partitions, unknown))
        return measured_load(settings_of(topics=[{"pattern": pattern}]), measurement)

    return build


def test_a_topic_missing_from_one_measurement_is_unknown(load_after):
    load = load_after(21, missing_from=20)
    assert (load.speeds, load.unknown) == ({HERE: 1000.0}, {AWAY})


def test_one_that_no_rule_matches_any_more_is_gone_at_once(load_after):
    assert load_after(21, missing_from=20, pattern="here").unknown == frozenset()


def test_one_that_was_missing_for_a_whole_window_is_gone(load_after):
    assert load_after(50, missing_from=20).unknown == {AWAY}
    load = load_after(52, missing_from=20)
    assert (load.speeds.keys(), load.unknown) == ({HERE}, frozenset())


def test_a_missing_size_is_unknown_for_as_long_as_it_is_missing(load_after):
    for seconds in (21, 60):
        assert load_after(seconds, unread_from=20).unknown == {AWAY}


def test_how_many_bytes_an_offset_takes_by_topic(load_after):
    assert load_after(21).bytes_per_offset == {"here": 100.0, "away": 100.0}
    assert load_after(1).bytes_per_offset == {}  # an empty log says nothing


def test_logs_of_a_topic_count_by_their_offsets_and_unknown_ones_not_at_all():
    def log(size, offsets, sampled=None):
        return PartitionReading(0.0, 0.0, TopicId("x"), 1, 5, 5 + offsets, size, sampled)

    tps = [TopicPartition("t", n) for n in range(4)]
    logs = dict(zip(tps, [log(1000, 10), log(6000, 30), log(None, 60), log(None, 10, 300.0)], strict=True))
    assert bytes_per_offset(logs) == {"t": 200.0}
    assert bytes_per_offset({tps[2]: logs[tps[2]]}) == {}
