"""The comparison of estimators: a step's time is counted from the step, and both see the same load."""

import pytest

from bench.steps import StepsCase, _Group, run_case
from kgs_core.config.packing import PackingSettings
from kgs_core.model import TopicPartition

TPS = [TopicPartition("t", n) for n in range(12)]


@pytest.mark.parametrize("shape", ["x 2", "x 4"])
def test_a_step_is_known_within_four_seconds_and_by_the_window_when_it_is_full(shape):
    case = StepsCase(shape, 0.1, partitions=12, seconds=400)
    by_steps, by_window = (run_case(case, 1, follows_steps=follows) for follows in (True, False))
    assert by_steps.known_s <= 4
    assert 20 < by_window.known_s <= 30


def test_records_of_a_step_that_is_known_soon_hardly_wait():
    case = StepsCase("x 2", 0.1, partitions=40, seconds=380)
    by_steps, by_window = (run_case(case, 1, follows_steps=follows).p99_s for follows in (True, False))
    assert by_steps < by_window / 10


def test_what_steps_cost_on_a_steady_load_is_nothing():
    case = StepsCase("steady", 0.3, partitions=12, seconds=300)
    assert run_case(case, 1, follows_steps=True) == run_case(case, 1, follows_steps=False)


def test_a_recorded_load_is_measured_as_it_was():
    speeds = [dict.fromkeys(TPS, 1e5 * (1 + n // 20)) for n in range(40)]  # doubles after 100 s
    case = StepsCase("day", 0.1, recorded=speeds, interval_s=5)
    by_steps, by_window = (run_case(case, 1, follows_steps=follows) for follows in (True, False))
    assert by_steps.error < by_window.error / 2
    assert by_steps.consumers > by_window.consumers > 5


def test_what_a_consumer_cannot_read_waits_until_it_can():
    """Two seconds' load for one second of consumer 1, and as much as it can read before and after it."""
    group = _Group(PackingSettings(consumer_capacity_bytes_per_s=100.0), target={TPS[0]: 1, TPS[1]: 1, TPS[2]: 2})
    for speed in (50.0, 150.0, 0.0, 50.0):
        group.read({TPS[0]: speed, TPS[1]: 50.0, TPS[2]: 10.0})
    assert [seconds for seconds, _ in group.waited] == [0.0, 0.0, 1.0, 0.0, 0.5, 0.0, 0.5, 0.0]
    assert group.p99_s() == 1.0
