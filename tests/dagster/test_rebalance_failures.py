"""How rebalance runs in Dagster fail: in a line, before any harm, and so that the next one goes on."""

from contextlib import suppress
from dataclasses import replace

import pytest

from kgs_core.adapters import control_process, rebalance_run
from kgs_core.control import controller
from kgs_core.control.controller_state import ControllerState
from kgs_dagster.assets.control_loop import COVERED, DONE
from tests.dagster.rebalancing import FOUR, GROWN, checks, failure
from tests.sim_group import tp


@pytest.mark.parametrize(
    ("offset", "line"),
    [(None, "measurement 1 is 31 s old, and membership.max_measurement_age_s is 30"), (77, "measurement 77 is not in")],
)
def test_a_measurement_that_is_gone_or_old_fails_the_run_before_anything_else(runs, offset, line):
    newest, pen = runs.sim.publish(**FOUR), runs.sim.topics.pen
    runs.sim.go_by(31)
    result = runs.run(measurement_offset=newest if offset is None else offset)
    step, said = failure(result)
    assert step == "write_speeds"
    assert said.startswith(line)
    assert runs.sim.topics.pen == pen


def test_an_algorithm_that_is_none_is_refused_in_a_line(runs):
    step, said = failure(runs.run(measurement_offset=runs.sim.publish(**FOUR), algorithm="best"))
    assert step == "write_speeds"
    assert said.startswith("algorithm 'best': use one of ")


def test_who_is_fenced_fails_in_a_line(runs):
    runs.sim.start(3)
    runs.sim.events.append(lambda: runs.sim.target().measurement_offset == 1 and runs.sim.topics.take_pen())
    result = runs.run(measurement_offset=runs.sim.publish(**GROWN))
    step, said = failure(result)
    assert step == "handover"
    assert "a newer controller has taken over" in said


@pytest.fixture
def careless(monkeypatch):
    """A controller that leaves a partition out of its Target."""
    look = controller.look

    def forgetful(state: ControllerState, now):
        found = look(state, now)
        if found.target is None:
            return found
        short = {p: c for p, c in found.target.assignment.items() if p != tp("a")}
        return replace(found, target=replace(found.target, assignment=short))

    monkeypatch.setattr(controller, "look", forgetful)


def test_an_unsafe_target_is_not_written_and_the_check_says_why(runs, careless):
    history = runs.sim.history()
    result = runs.run(measurement_offset=runs.sim.publish(**GROWN))
    step, said = failure(result)
    assert step == "consumer_assignment"
    assert "S6 a:0: has no consumer" in said
    assert checks(result) == {("consumer_assignment", COVERED): False}
    assert not [e for e in result.get_asset_materialization_events() if e.asset_key.path[-1] == "consumer_assignment"]
    assert runs.sim.history() == history


def test_a_change_that_takes_too_long_says_so_and_fails_nobody(runs):
    result = runs.run(measurement_offset=runs.sim.publish(**GROWN))  # nobody starts consumer 3
    assert result.success
    assert runs.recorded(result, "handover")["outcome"].startswith("timed out")
    assert checks(result)["handover", DONE] is False


class Killed(BaseException):
    """SIGKILL, as far as it goes within one process."""


@pytest.mark.parametrize("point", ["measured", "before-write", "after-write", "assigned", "priced", "handed-over"])
def test_the_next_run_goes_on_wherever_one_was_killed(runs, point, monkeypatch):
    def kill(name):
        if name == point:
            raise Killed

    runs.sim.start(3)
    with monkeypatch.context() as patched:
        for module in (control_process, rebalance_run):
            patched.setattr(module, "crash_here", kill)
        with suppress(Killed):
            runs.run(measurement_offset=runs.sim.publish(**GROWN))
    runs.sim.go_by(60)
    result = runs.run(measurement_offset=runs.sim.publish(**GROWN))
    assert result.success
    assert len(set(runs.sim.owners().values())) == 3
    assert runs.sim.history().count("Target") == 2
    assert runs.sim.target().rscore == 0.9
