"""Rebalance runs in Dagster, on a simulated group: what they do, and what they record."""

from dataclasses import replace

import dagster as dg
import pytest

from kgs_core.group.membership.member import Decision
from kgs_core.group.protocol import DesiredState, FlatOut, RunState
from kgs_core.model import ConsumerId
from kgs_core.packing import ALGORITHMS
from kgs_dagster.assets.control_loop import COVERED, DONE, FITS, OWNERS, SAFE
from kgs_dagster.definitions import build_defs
from kgs_dagster.run_process import PROCESS
from tests.dagster.groups import two_groups
from tests.dagster.rebalancing import FOUR, GROWN, Runs, checks
from tests.sim_group import tp

STEPS = ["write_speeds", "consumer_assignment", "rscore", "handover"]


def test_a_run_brings_a_group_up(instance):
    runs = Runs(instance)
    runs.sim.is_there = False
    runs.sim.start(1, 2)
    result = runs.run(measurement_offset=runs.sim.publish(**FOUR))
    assert result.success
    assert runs.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}
    assert checks(result) == {
        ("consumer_assignment", COVERED): True,
        ("consumer_assignment", FITS): True,
        ("consumer_assignment", SAFE): True,
        ("handover", SAFE): True,
        ("handover", OWNERS): True,
        ("handover", DONE): True,
    }
    assert runs.sim.closed == 1


def test_what_a_change_records(runs):
    runs.sim.start(3)
    offset = runs.sim.publish(**GROWN)
    result = runs.run(measurement_offset=offset, reason="consumer above consumer_capacity: 1", attempt=2)
    assert result.success
    speeds = runs.recorded(result, "write_speeds")
    assert speeds["total_load_bytes_per_s"] == 280.0
    assert (speeds["partitions"], speeds["unknown_partitions"], speeds["measurement_offset"]) == (4, 0, offset)
    assignment = runs.recorded(result, "consumer_assignment")
    assert (assignment["consumers"], assignment["moved_partitions"], assignment["attempt"]) == (3, 1, "2")
    assert (assignment["total_load_bytes_per_s"], assignment["max_load_bytes_per_s"]) == (280.0, 100.0)
    assert assignment["asked_because"] == "consumer above consumer_capacity: 1"
    assert assignment["is_new"] is True
    assert "consumer above consumer_capacity: 1" in assignment["reason"]
    moved, *others = assignment["assignment"]
    assert (moved["before"], moved["consumer"]) == ("1", 3)
    assert len(others) == 3
    price = runs.recorded(result, "rscore")
    assert (price["rscore"], price["moved_partitions"], price["moved_bytes_per_s"]) == (0.9, 1, 90.0)
    over = runs.recorded(result, "handover")
    assert over["outcome"] == "converged"
    assert (over["moved_partitions"], over["consumers"], over["unowned_partitions"]) == (1, 3, 0)
    assert over["unread_s"] == over["max_unread_s"] > 0
    assert over["unread_bytes"] == pytest.approx(90.0 * over["unread_s"])


def test_the_exact_inputs_are_recorded(runs):
    runs.sim.start(3)
    before = runs.sim.target()
    offset = runs.sim.publish(**GROWN)
    inputs = runs.recorded(runs.run(measurement_offset=offset), "consumer_assignment")["inputs"]
    assert inputs["measurement"] == {"topic": "kgs.g.monitor.writeSpeed", "partition": 0, "offset": offset}
    assert inputs["speeds"] == {f"{name}:0": float(speed) for name, speed in GROWN.items()}
    assert inputs["target_before"]["assignment"]["a"] == {"0": before.assignment[tp("a")]}
    assert inputs["read_before"] == inputs["target_before"]["assignment"]
    assert inputs["packing"]["packing_capacity_bytes_per_s"] == 100


def test_all_algorithms_are_compared(runs):
    runs.sim.start(3)
    result = runs.run(measurement_offset=runs.sim.publish(**GROWN))
    rows = runs.recorded(result, "consumer_assignment")["alternatives"]
    assert rows[0]["algorithm"] == "search"
    assert {row["algorithm"] for row in rows} == set(ALGORITHMS)


def test_figures_are_plain_numbers(runs):
    """Dagster draws nothing else over time."""
    runs.sim.start(3)
    result = runs.run(measurement_offset=runs.sim.publish(**GROWN))
    names = {
        "consumer_assignment": ["consumers", "rscore", "moved_partitions", "max_load_bytes_per_s"],
        "rscore": ["rscore", "moved_partitions"],
        "handover": ["unread_s", "duration_s"],
    }
    for step, numbers in names.items():
        recorded = runs.recorded(result, step)
        assert {name: type(recorded[name]) for name in numbers if type(recorded[name]) not in (int, float)} == {}


def test_nothing_to_do_is_a_success(runs):
    count = len(runs.sim.history())
    result = runs.run(measurement_offset=runs.sim.publish(**FOUR))
    assert result.success
    assert runs.recorded(result, "consumer_assignment")["outcome"].startswith("nothing to do")
    assert runs.recorded(result, "rscore")["rscore"] == 0.0
    assert runs.sim.history()[count:] == []


def test_by_hand_it_takes_the_newest(runs):
    offset = runs.sim.publish(**FOUR)
    assert runs.recorded(runs.run(), "write_speeds")["measurement_offset"] == offset


def test_by_hand_it_carries_out_a_better_packing_at_once(runs):
    """As `kgs plan --apply` does; the sensor's runs do only what is due."""
    offset = runs.sim.publish(a=20, b=20, c=20, d=20)
    result = runs.run(measurement_offset=offset, applies_plan=False)
    assert runs.recorded(result, "consumer_assignment")["outcome"].startswith("nothing to do")
    runs.run()
    assert {*runs.sim.target().assignment.values()} == {1}


@pytest.mark.parametrize("age_s", [0, 31])
def test_a_dry_run_shows_the_plan_and_touches_nothing(runs, age_s):
    runs.sim.publish(**GROWN)
    runs.sim.go_by(age_s)
    writer, history = runs.sim.topics.writer, runs.sim.history()
    result = runs.run(dry_run=True, algorithm="bfd")
    assert result.success
    plan = runs.recorded(result, "consumer_assignment")
    assert (plan["dry_run"], plan["algorithm"], plan["consumers"]) == (True, "bfd", 3)
    assert plan["outcome"].startswith("dry run: a run would write it: consumer above consumer_capacity: 1")
    assert runs.recorded(result, "handover")["outcome"] == "dry run: nothing is handed over"
    assert runs.sim.topics.writer == writer
    assert [name for name in runs.sim.history()[len(history) :] if name != "Report"] == []


def test_another_algorithm_packs(runs):
    runs.sim.start(3)
    runs.run(measurement_offset=runs.sim.publish(**GROWN), algorithm="bfd")
    assert runs.sim.target().algorithm == "bfd"


def test_assignments_are_given_without_any_measurement(runs):
    runs.sim.fleet.of(ConsumerId(1))[0].kill()
    runs.sim.start(1)
    runs.sim.measurements = {}
    result = runs.run(packs=False, reason="Assignments are due: 1@1-3")
    assert result.success
    assert runs.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}
    assert runs.recorded(result, "consumer_assignment")["outcome"] == "the Target that stands is carried out"


@pytest.mark.parametrize("step", STEPS)
def test_each_step_can_be_executed_alone(runs, step):
    assert runs.run(measurement_offset=runs.sim.publish(**FOUR)).success  # so each asset is there
    runs.sim.start(3)
    result = runs.run(step, measurement_offset=runs.sim.publish(**GROWN))
    assert result.success
    assert [event.asset_key.path[-1] for event in result.get_asset_materialization_events()] == [step]
    assert runs.run(measurement_offset=runs.sim.publish(**GROWN)).success
    assert len(set(runs.sim.owners().values())) == 3


def test_a_desired_state_is_carried_out(runs):
    runs.sim.topics.append(DesiredState(RunState.PAUSED, "me", 0))
    assert runs.run(measurement_offset=runs.sim.publish(**FOUR)).success
    assert runs.sim.owners() == {}


def test_a_run_says_which_process_it_is(runs):
    """So that it does not keep the next ones waiting when its machine goes down."""
    result = runs.run(measurement_offset=runs.sim.publish(**FOUR))
    assert PROCESS in runs.instance.get_run_by_id(result.run_id).tags


def test_the_group_can_be_checked_at_any_time(runs):
    job = runs.defs.resolve_implicit_global_asset_job_def()
    keys = [
        dg.AssetCheckKey(runs.group.key("consumer_assignment"), "newest_target"),
        dg.AssetCheckKey(runs.group.key("handover"), "owners_now"),
    ]
    writer = runs.sim.topics.writer

    def look():
        selected = job.get_subset(asset_check_selection=set(keys), asset_selection=set())
        return selected.execute_in_process(instance=runs.instance)

    assert set(checks(look()).values()) == {True}
    assert len(checks(look())) == 2
    assert runs.sim.topics.writer == writer
    for process in runs.sim.fleet.living():  # a fault of theirs
        both = Decision(frozenset({tp("a")}), offset=process.membership.applied)
        process.membership = process.membership.acted(both, runs.sim.clock.now)
        process.report()
    assert checks(look())["handover", "owners_now"] is False


def test_consumers_that_read_less_than_the_configured_capacity_are_a_warning(runs):
    runs.sim.publish(**FOUR)
    key = dg.AssetCheckKey(runs.group.key("consumer_assignment"), "capacity_now")
    job = runs.defs.resolve_implicit_global_asset_job_def().get_subset(
        asset_check_selection={key}, asset_selection=set()
    )

    def look():
        return job.execute_in_process(instance=runs.instance)

    assert checks(look()) == {("consumer_assignment", "capacity_now"): True}, "nothing is known"
    load, at = runs.sim.measurements[max(runs.sim.measurements)]
    runs.sim.measurements[max(runs.sim.measurements)] = replace(load, bytes_per_offset={"a": 1.0}), at
    for process in runs.sim.fleet.living():
        process.flat_out = FlatOut(60.0, 300.0, 0.0, 1000, 100, {"a": 100}, "x")
    runs.sim.go_by(61.0)
    result = look()
    assert checks(result) == {("consumer_assignment", "capacity_now"): False}
    (found,) = result.get_asset_check_evaluations()
    assert found.severity is dg.AssetCheckSeverity.WARN
    assert "less than the configured capacity" in found.metadata["problems"].value


def test_two_groups_stand_side_by_side():
    defs = build_defs(groups=two_groups())
    dg.Definitions.validate_loadable(defs)
    repository = defs.get_repository_def()
    assert {"rebalance_job_a_b", "rebalance_job_c_d"} <= set(repository.job_names)
    assert {"partition_load_sensor_a_b", "partition_load_sensor_c_d"} <= {s.name for s in repository.sensor_defs}
    assert repository.get_job("rebalance_job_a_b").executor_def.name == "in_process"
