"""Rebalance runs in Dagster, on a simulated group: what they do, and what they record."""

import pytest

from kgs_core.packing import ALGORITHMS
from kgs_dagster.assets.control_loop import COVERED, DONE, FITS, OWNERS, SAFE
from kgs_dagster.run_process import PROCESS
from tests.dagster.rebalancing import FOUR, GROWN, Runs
from tests.dagster.results import checks, recorded
from tests.sim_group import tp

STEPS = ["write_speeds", "consumer_assignment", "rscore", "handover"]


def test_a_run_brings_a_group_up_and_says_which_process_it_is(instance):
    """So that it does not keep the next ones waiting when its machine goes down."""
    runs = Runs(instance)
    runs.sim.is_there = False
    runs.sim.start(1, 2)
    result = runs.run_at(FOUR)
    assert result.success
    assert runs.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}
    assert checks(result) == {
        **{("consumer_assignment", check): True for check in (COVERED, FITS, SAFE)},
        **{("handover", check): True for check in (SAFE, OWNERS, DONE)},
    }
    assert runs.sim.closed == 1
    assert PROCESS in instance.get_run_by_id(result.run_id).tags


def test_what_a_change_records(runs):
    """Dagster draws nothing but plain numbers over time."""
    runs.sim.start(3)
    before = runs.sim.target()
    offset = runs.sim.publish(**GROWN)
    result = runs.run(measurement_offset=offset, reason="consumer above consumer_capacity: 1", attempt=2)
    assert result.success
    found = recorded(result)
    expected = {
        "write_speeds": {
            "total_load_bytes_per_s": 280.0, "partitions": 4, "unknown_partitions": 0, "measurement_offset": offset,
        },
        "consumer_assignment": {
            "consumers": 3, "moved_partitions": 1, "attempt": "2", "total_load_bytes_per_s": 280.0,
            "max_load_bytes_per_s": 100.0, "asked_because": "consumer above consumer_capacity: 1", "is_new": True,
            "rscore": 0.9,
        },
        "rscore": {"rscore": 0.9, "moved_partitions": 1, "moved_bytes_per_s": 90.0},
        "handover": {"outcome": "converged", "moved_partitions": 1, "consumers": 3, "unowned_partitions": 0},
    }  # fmt: skip
    assert {step: {name: found[step][name] for name in figures} for step, figures in expected.items()} == expected
    plan, over = found["consumer_assignment"], found["handover"]
    assert "consumer above consumer_capacity: 1" in plan["reason"]
    moved, *others = plan["assignment"]
    assert (moved["before"], moved["consumer"], len(others)) == ("1", 3, 3)
    assert over["unread_s"] == over["max_unread_s"] > 0
    assert over["unread_bytes"] == pytest.approx(90.0 * over["unread_s"])
    assert type(over["duration_s"]) is float
    rows = plan["alternatives"]
    assert (rows[0]["algorithm"], {row["algorithm"] for row in rows}) == ("search", {*ALGORITHMS})
    inputs = plan["inputs"]
    assert inputs["measurement"] == {"topic": "kgs.g.monitor.writeSpeed", "partition": 0, "offset": offset}
    assert inputs["speeds"] == {f"{name}:0": float(speed) for name, speed in GROWN.items()}
    assert inputs["target_before"]["assignment"]["a"] == {"0": before.assignment[tp("a")]}
    assert inputs["read_before"] == inputs["target_before"]["assignment"]
    assert inputs["packing"]["packing_capacity_bytes_per_s"] == 100


def test_nothing_to_do_is_a_success_and_by_hand_the_newest_measurement_is_taken(runs):
    count = len(runs.sim.history())
    result = runs.run_at(FOUR)
    assert result.success
    found = recorded(result)
    assert found["consumer_assignment"]["outcome"].startswith("nothing to do")
    assert found["rscore"]["rscore"] == 0.0
    assert runs.sim.history()[count:] == []
    offset = runs.sim.publish(**FOUR)
    assert recorded(runs.run())["write_speeds"]["measurement_offset"] == offset


def test_by_hand_it_carries_out_a_better_packing_at_once(runs):
    """As `kgs plan --apply` does; the sensor's runs do only what is due."""
    result = runs.run_at(dict.fromkeys("abcd", 20), applies_plan=False)
    assert runs.recorded(result, "consumer_assignment")["outcome"].startswith("nothing to do")
    runs.run()
    assert {*runs.sim.target().assignment.values()} == {1}


@pytest.mark.parametrize("step", STEPS)
def test_each_step_can_be_executed_alone(runs, step):
    assert runs.run_at(FOUR).success  # so each asset is there
    runs.sim.start(3)
    result = runs.run_at(GROWN, step)
    assert result.success
    assert [*recorded(result)] == [step]
    assert runs.run_at(GROWN).success
    assert len(set(runs.sim.owners().values())) == 3
