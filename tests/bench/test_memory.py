"""What a series of memory samples says: flat, growing, or that the time was too short."""

import random

import pytest

from bench.memory import trend
from kgs_core.errors import PermanentError

LIMIT = 100.0


def samples(minutes, mb_per_h, noise_mb, seed=1):
    draw = random.Random(seed)
    times = [float(second) for second in range(int(60 * minutes))]
    return times, [500 + mb_per_h * at / 3600 + draw.uniform(-noise_mb, noise_mb) for at in times]


@pytest.mark.parametrize(
    ("minutes", "mb_per_h", "noise_mb", "verdict"),
    [
        (10, 0, 5, "flat"),
        (10, 50, 5, "flat"),
        (10, 300, 5, "grows"),
        (60, -80, 30, "flat"),
        (1, 0, 200, "open"),
        (10, 100, 20, "open"),
    ],
)
def test_the_verdict_is_as_sure_as_the_samples_are(minutes, mb_per_h, noise_mb, verdict):
    found = trend(*samples(minutes, mb_per_h, noise_mb), LIMIT)
    assert found.verdict == verdict
    assert abs(found.mb_per_h - mb_per_h) <= 2 * found.error_mb_per_h
    assert found.highest_mb >= max(found.first_mb, found.last_mb)


def test_one_wild_sample_is_no_growth():
    times, mb = samples(10, 0, 1)
    mb[-1] += 5000
    found = trend(times, mb, LIMIT)
    assert (found.verdict, found.highest_mb > 5000) == ("flat", True)


def test_a_leak_of_one_step_counts_as_what_it_is():
    times, mb = samples(10, 0, 1)
    found = trend(times, [value + (60 if at > 300 else 0) for at, value in zip(times, mb, strict=True)], LIMIT)
    assert found.verdict == "grows"
    assert found.last_mb - found.first_mb == pytest.approx(60, abs=2)


def test_too_few_samples_say_nothing():
    with pytest.raises(PermanentError, match="too few: measure for longer"):
        trend([1.0, 2.0], [3.0, 4.0], LIMIT)
