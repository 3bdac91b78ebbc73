"""A rolling replacement under Dagster: before a hand-over a run may do no more than ask the spare what it can open."""

from dataclasses import replace

import pytest

from kgs_core.group.protocol import DesiredVersion
from kgs_dagster.resources import UNFINISHED
from tests.dagster.rebalancing import FOUR
from tests.sim_group import tp

SECOND = {"version": "2", "config_hash": "b"}


@pytest.fixture
def wanting(runs):
    """Two consumers of version 1 read, a spare of version 2 has joined, and version 2 is wanted."""
    runs.sim.topics.append(DesiredVersion(**SECOND, by="me", time_ms=runs.sim.clock.ms))
    runs.sim.fleet.habits = replace(runs.sim.fleet.habits, **SECOND)
    runs.sim.start(3)
    runs.sim.go_by(5)
    run = runs.run_at(FOUR)
    assert run.success
    assert runs.sim.target().spares == (3,)
    return runs


def test_a_run_that_only_writes_what_is_on_trial_is_no_failure(wanting):
    """The spare was started anew, so that it has to be asked once more."""
    wanting.sim.fleet.of(3)[0].kill()
    wanting.sim.start(3)
    wanting.sim.go_by(5)
    target, count = wanting.sim.target(), len(wanting.sim.history())
    result = wanting.run_at(FOUR)
    assert result.success
    assert UNFINISHED not in wanting.instance.get_run_by_id(result.run_id).tags
    assert wanting.sim.target() == target
    assert wanting.sim.history()[count:] == ["MemberAssignment", "Tombstone"]
    assert wanting.recorded(result, "handover")["outcome"] == "converged"


def test_what_cannot_be_opened_asks_for_no_run_without_end(wanting):
    for process in wanting.sim.fleet.of(3):
        process.habits = replace(process.habits, cannot_open={tp("a"): "no rule"})
    for _ in range(2):
        wanting.sim.go_by(5)
        assert wanting.run_at(FOUR).success
    history = wanting.sim.history()
    result = wanting.run_at(FOUR)
    assert wanting.recorded(result, "handover")["outcome"].startswith("nothing to do")
    assert wanting.sim.history() == history
    assert wanting.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}
