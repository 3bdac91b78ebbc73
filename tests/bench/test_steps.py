"""The comparison of estimators: a step's time is counted from the step, and both see the same load."""

import pytest

from bench.steps import StepsCase, run_case


@pytest.mark.parametrize("shape", ["x 2", "x 4"])
def test_a_step_is_known_within_four_seconds_and_by_the_window_when_it_is_full(shape):
    case = StepsCase(shape, 0.1, partitions=12, seconds=400)
    assert run_case(case, 1, follows_steps=True).known_s <= 4
    assert 20 < run_case(case, 1, follows_steps=False).known_s <= 30


def test_what_steps_cost_on_a_steady_load_is_nothing():
    case = StepsCase("steady", 0.3, partitions=12, seconds=300)
    assert run_case(case, 1, follows_steps=True) == run_case(case, 1, follows_steps=False)
