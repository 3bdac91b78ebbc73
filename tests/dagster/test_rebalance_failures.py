"""How rebalance runs in Dagster fail: in a line, before any harm, and so that the next one goes on."""

from contextlib import suppress

import dagster as dg
import pytest

from kgs_core.errors import TransientError
from kgs_core.group.controller import machine
from kgs_core.runtime import controller_loop, rebalance_run
from kgs_dagster.assets.control_loop import COVERED, DONE
from kgs_dagster.jobs.rebalance import RebalanceRuns
from kgs_dagster.resources import UNFINISHED
from tests.dagster.rebalancing import GROWN
from tests.dagster.results import checks, failure
from tests.failpoints import KilledError
from tests.sim_group import careless


def test_what_a_person_can_mend_fails_in_a_line_before_anybody_is_fenced(runs, monkeypatch):
    """Whatever else ends a run: tests/core/runtime/test_rebalance_run.py."""
    writer = runs.sim.topics.writer
    runs.sim.go_by(31)

    def measure():
        raise TransientError("Kafka b:9092: no answer")

    monkeypatch.setattr(runs.sim, "measure", measure)
    step, said = failure(runs.run())
    assert step == "write_speeds"
    assert "Kafka b:9092: no answer" in said
    assert runs.sim.topics.writer == writer


def test_an_unsafe_target_is_not_written_and_the_check_says_why(runs, monkeypatch):
    monkeypatch.setattr(machine, "select_target", careless(machine.select_target))
    history = runs.sim.history()
    result = runs.run_at(GROWN)
    step, said = failure(result)
    assert step == "consumer_assignment"
    assert "S6 a:0: has no consumer" in said
    assert checks(result) == {("consumer_assignment", COVERED): False}
    assert not [e for e in result.get_asset_materialization_events() if e.asset_key.path[-1] == "consumer_assignment"]
    assert runs.sim.history() == history


def test_a_change_that_is_not_carried_out_is_no_success(runs):
    """Runs that had handed nothing over, since a consumer did not come, were green."""
    result = runs.run_at(GROWN)  # nobody starts consumer 3
    step, said = failure(result)
    assert step == "handover"
    assert said == (
        "the change is not carried out: timed out: not finished after 20 s: the next run continues from here"
    )
    assert runs.recorded(result, "handover")["outcome"].startswith("timed out")
    assert checks(result)["handover", DONE] is False


def test_a_change_that_gives_way_to_another_is_no_failure(runs):
    """The first run of a cold start was red, since the first consumer came while it waited for all."""
    runs.sim.events.append(lambda: runs.sim.target().measurement_offset == 1 and runs.sim.publish(**GROWN, e=10) > 0)
    result = runs.run_at(GROWN)
    assert result.success
    assert runs.recorded(result, "handover")["outcome"].startswith("superseded: ")
    assert checks(result)["handover", DONE] is False, "and nobody takes it for carried out"
    assert RebalanceRuns(runs.instance, runs.group).hold(1) is None
    assert runs.run_at({**GROWN, "e": 10}).success is False, "consumer 3 never comes"


def test_after_a_change_that_is_not_carried_out_the_next_run_need_not_wait(runs, add_run):
    """Nothing went wrong: whatever is due now may well be something else."""
    result = runs.run_at(GROWN)
    tags = runs.instance.get_run_by_id(result.run_id).tags
    add_run(tags)
    assert RebalanceRuns(runs.instance, runs.group).hold(1) is None
    add_run({key: value for key, value in tags.items() if key != UNFINISHED})
    assert "the last rebalance run failed" in RebalanceRuns(runs.instance, runs.group).hold(1).why


@pytest.fixture
def add_run(runs):
    """A failed run with these tags, as the daemon has it."""

    def add(tags):
        job = runs.defs.resolve_job_def("rebalance_job")
        return runs.instance.create_run_for_job(job, tags={**job.tags, **tags}, status=dg.DagsterRunStatus.FAILURE)

    return add


@pytest.mark.parametrize("point", ["measured", "before-write", "after-write", "assigned", "priced", "handed-over"])
def test_the_next_run_goes_on_wherever_one_was_killed(runs, point, monkeypatch):
    reached = []

    def kill(name):
        reached.append(name)
        if name == point:
            raise KilledError

    runs.sim.start(3)
    with monkeypatch.context() as patched:
        for module in (controller_loop, rebalance_run):
            patched.setattr(module, "failpoint", kill)
        with suppress(KilledError):  # Dagster ends some runs of its own accord
            runs.run_at(GROWN)
    assert point in reached
    runs.sim.go_by(60)
    result = runs.run_at(GROWN)
    assert result.success
    assert len(set(runs.sim.owners().values())) == 3
    assert runs.sim.history().count("Target") == 2
    assert runs.sim.target().rscore == 0.9
