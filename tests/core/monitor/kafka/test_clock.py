"""A measurement's age by the clock that can tell it: a wall clock that was set anew makes none of ours old."""

from types import SimpleNamespace

import pytest

from kgs_core.monitor.kafka import clock as module
from kgs_core.monitor.kafka.clock import age_s, clock
from kgs_core.monitor.speeds import Measure, Measurement, Reading


@pytest.mark.parametrize(
    ("clock_id", "wall_ms", "expected"),
    [(clock(), 4_940_000, 3.0), ("another machine's", 4_940_000, 60.0), ("another machine's", 5_001_000, 0.0)],
    ids=["made here", "made elsewhere", "by a clock that is ahead"],
)
def test_age_of_a_measurement(monkeypatch, clock_id, wall_ms, expected):
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 1000.0, time=lambda: 5000.0))
    assert age_s(Measurement(Reading(997.0, wall_ms, clock_id, Measure.OFFSETS, {}), {})) == expected
