"""The comparison of estimators: a step's time is counted from the step, and both see the same load."""

import pytest

from bench.steps import StepsCase, run_case
from kgs_core.model import TopicPartition

TPS = [TopicPartition("t", n) for n in range(12)]


@pytest.mark.parametrize("shape", ["x 2", "x 4"])
def test_a_step_is_known_within_four_seconds_and_by_the_window_when_it_is_full(shape):
    case = StepsCase(shape, 0.1, partitions=12, seconds=400)
    assert run_case(case, 1, follows_steps=True).known_s <= 4
    assert 20 < run_case(case, 1, follows_steps=False).known_s <= 30


def test_what_steps_cost_on_a_steady_load_is_nothing():
    case = StepsCase("steady", 0.3, partitions=12, seconds=300)
    assert run_case(case, 1, follows_steps=True) == run_case(case, 1, follows_steps=False)


def test_a_recorded_load_is_measured_as_it_was():
    speeds = [dict.fromkeys(TPS, 1e5 * (1 + n // 20)) for n in range(40)]  # doubles after 100 s
    case = StepsCase("day", 0.1, recorded=speeds, interval_s=5)
    by_steps, by_window = (run_case(case, 1, follows_steps=follows) for follows in (True, False))
    assert by_steps.error < by_window.error / 2
    assert by_steps.consumers > by_window.consumers > 5
