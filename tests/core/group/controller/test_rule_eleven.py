"""Rule 11, whatever asks for a plan: nothing is packed by an old measurement, and while a speed is unknown nobody who
reads is given up."""

from dataclasses import replace

import pytest

from kgs_core.group.controller.target_selection import select_target
from kgs_core.group.view.group_health import GroupHealth
from kgs_core.planning import plan
from kgs_core.planning.load import Load
from kgs_core.planning.triggers import Reason, Watched, decide, exit_conditions

THREE = {1: "a", 2: "b", 3: "u"}
SPEEDS = {"a": 30, "b": 20, "u": 10}
TRIGGERS = {
    Reason.OVERLOADED: ({}, {1: "ad", 2: "b", 3: "u"}, {}, {"a": 70, "d": 60}),
    Reason.UNOWNED: ({}, THREE, {}, {"new": 5}),
    Reason.LOST: ({"current": THREE}, {**THREE, 4: "d"}, {"lost": {4}}, {"d": 5}),
    Reason.RESTARTED: ({"current": {1: "a", 3: "u"}}, THREE, {"restarted": {2}}, {}),
    Reason.FAILING: ({"current": THREE}, {**THREE, 4: "d"}, {"failing": {4}}, {"d": 5}),
    Reason.CHANGED: ({}, {1: "ad", 2: "b", 3: "u"}, {}, {}),
    Reason.TIMEOUT: ({}, THREE, {"since_packing_s": 1e6}, {}),
}
"""What is read if it is not what the Target says, the Target, who is amiss, and speeds beside those of the three."""


@pytest.fixture(params=TRIGGERS, ids=lambda reason: reason.name)
def triggered(request, assigned, speeds_of):
    """The reason, the group, and the speeds."""
    read, target, amiss, speeds = TRIGGERS[request.param]
    current = assigned(read.get("current", target))
    found = Watched(assigned(target), current, frozenset({1, 2, 3}), **amiss)
    return request.param, found, speeds_of(**(SPEEDS | speeds))


@pytest.fixture
def settings(packing):
    """Best fit decreasing would put what there is into as few consumers as can be."""
    return packing(algorithm="bfd")


def test_who_reads_goes_on_while_a_speed_is_unknown(triggered, settings, new_random, tp):
    reason, watched, speeds = triggered
    load = Load(speeds, frozenset({tp("u")}))
    held = [condition.reason for condition in exit_conditions(load, watched, settings)]
    assert (reason in held) == (reason is not Reason.TIMEOUT)
    decision = decide(load, watched, settings, new_random)
    if decision.plan is not None:
        assert set(decision.plan.target.values()) >= {1, 2, 3}


def test_else_somebody_would_be_given_up(triggered, settings, new_random, tp, monkeypatch):
    """The same groups, packed freely: so the test above can fail."""
    reason, watched, speeds = triggered
    monkeypatch.setattr(plan, "pinned_partitions", lambda *_: frozenset())
    free = plan.make_plan(Load(speeds, frozenset({tp("u")})), watched.group(), settings, new_random)
    assert len(set(free.target.values())) < 3, reason


@pytest.mark.parametrize("is_fresh", [True, False])
def test_nothing_is_packed_by_an_old_measurement(triggered, settings, synchronized, monkeypatch, is_fresh):
    """A restarted consumer asks for no packing at all: what it is to read is given to it as it stands."""
    reason, watched, speeds = triggered
    monkeypatch.setattr(GroupHealth, "watched", lambda *_: watched)
    state = synchronized()
    target = replace(state.view.target.message, assignment=watched.target, speeds=dict.fromkeys(watched.target, 1.0))
    view = replace(state.view, target=replace(state.view.target, message=target))
    limit_s = state.options.membership.max_measurement_age_s
    options = replace(state.options, packing=settings)
    measured = replace(state, view=view, options=options, measured=Load(speeds))
    found = select_target(measured, limit_s if is_fresh else limit_s + 1)
    packed = found.target is not None and found.target.speeds == speeds
    assert packed == (is_fresh and reason is not Reason.RESTARTED)
