"""Errors and settling times of made-up measurements."""

import pytest

from bench.accuracy import Accuracy, AccuracyPoint, accuracy


def window_after_a_step(t, before=100.0, after=200.0, at=40.0, window=30.0):
    share = min(1.0, max(0.0, (t - at) / window))
    return before + (after - before) * share


def test_a_window_settles_when_it_is_nearly_filled_with_the_new_speed():
    points = [AccuracyPoint(t, window_after_a_step(t), window_after_a_step(t), 0.0) for t in range(30, 90)]
    found = accuracy(points, 30.0, (40.0, 40.0))
    assert found == Accuracy(27.0, 0.0, 0.0)


def test_a_speed_that_leaves_again_has_not_settled():
    points = [AccuracyPoint(t, 300.0 if t == 88 else 200.0, 200.0, 0.0) for t in range(30, 90)]
    assert accuracy(points, 30.0, (40.0, 40.0)).settled_s == 49.0


def test_what_was_watched_too_shortly_has_no_settling_time():
    points = [AccuracyPoint(t, 200.0, 200.0, 0.0) for t in range(30, 60)]
    assert accuracy(points, 30.0, (40.0, 40.0)).settled_s is None


def test_errors_of_the_time_of_change_are_not_steady_ones():
    points = [AccuracyPoint(t, 110.0 if 45 < t < 60 else 101.0, 100.0, 0.0) for t in range(30, 90)]
    found = accuracy(points, 30.0, (40.0, 50.0))
    assert found.steady_max == pytest.approx(0.01)
