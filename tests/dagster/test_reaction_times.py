"""How fast a group answers to its load, as a rebalance run records it."""

import time

import pytest

from kgs_dagster.assets.control_loop_figures import of_times, times_text
from tests.dagster.rebalancing import GROWN, Runs

STEPS = ["measured_to_decided_s", "decided_to_begun_s", "begun_to_target_s", "target_to_started_s"]
NAMES = [*STEPS, "started_to_handed_over_s", "reaction_s"]


def test_the_steps_add_up():
    times = of_times([100.0, 100.5, 104.5, 105.25, 106.0, 108.0])
    assert times == dict(zip(NAMES, [0.5, 4.0, 0.75, 0.75, 2.0, 8.0], strict=True))
    assert times_text(times) == (
        "measured -> handed over in 8.0 s: measured to decided 0.5 s, decided to begun 4.0 s, begun to target 0.8 s, "
        "target to started 0.8 s, started to handed over 2.0 s"
    )


def test_what_is_not_known_or_of_an_earlier_run_is_left_out():
    instants = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0]
    for missing in range(6):
        assert of_times([*instants[:missing], None, *instants[missing + 1 :]]) == {}
    assert of_times([100.0, 101.0, 105.0, 103.0, 103.5, 106.0]) == {}


def test_a_change_is_recorded_with_its_times(instance, monkeypatch):
    after_dagster_s = time.time() + 60.0  # noqa: TID251 - what Dagster notes of a run is real
    monkeypatch.setattr("tests.sim_group.START_S", after_dagster_s)
    runs = Runs(instance)
    runs.sim.start(1, 2, 3)
    offset = runs.sim.publish(**GROWN)
    runs.sim.go_by(10.0)  # it was measured before the run was asked for
    recorded = runs.recorded(runs.run(measurement_offset=offset), "handover")
    assert recorded["reaction_s"] == pytest.approx(sum(recorded[name] for name in NAMES[:-1]), abs=0.01)
    assert min(recorded[name] for name in NAMES) >= 0


def test_a_run_that_had_nothing_to_change_does_not(instance):
    runs = Runs(instance)
    runs.sim.is_there = False
    runs.sim.start(1, 2, 3)
    assert runs.run_at(GROWN).success
    assert "reaction_s" not in runs.recorded(runs.run_at(GROWN), "handover")
