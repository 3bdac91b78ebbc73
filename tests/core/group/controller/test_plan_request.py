"""`packing.apply: forced_only` and `kgs plan --apply`: what waits, and how what was asked for is carried out once."""

from dataclasses import replace

import pytest

from kgs_core.group.controller.machine import begin, step
from kgs_core.group.controller.plan_request import FORCED_ONLY, open_request, request_wait
from kgs_core.group.controller.state import ControllerOutcome, Result, VainSearch
from kgs_core.group.protocol import DesiredState, RunState
from kgs_core.group.view.events import RecordsRead, Write, WriteFailed
from kgs_core.group.view.transitions import State
from kgs_core.reporting.metric_counters import is_forced
from tests.a_status import sentences_of
from tests.core.group.controller.two_readers import TARGET, A, B, acts, group, look, measured, received, written

NOW_S = 400.0
"""Later than a better packing is looked for; the clock says 01:30 UTC."""
CALM = measured(a=30, b=20)
"""One consumer is enough for it."""


@pytest.fixture
def calm(synchronized, packing):
    """A controller whose load one consumer could read."""

    def build(target=TARGET, **changes):
        settings = packing(**{"apply": "forced_only", **changes})
        state = replace(synchronized(group(target), packing=settings), wall_ms=(90 * 60 - NOW_S) * 1000.0)
        return step(state, CALM, NOW_S)[0]

    return build


def asks(state, apply_ms=5, offset=0, by="sam; me", wanted=RunState.RUNNING):
    return step(state, RecordsRead([received(DesiredState(wanted, by, 0, apply_ms), offset)]), NOW_S)[0]


def ticks(state, now=NOW_S + 1, event=CALM):
    state, commands = look(state, event, now)
    return state, next((each.target for each in acts(commands) if isinstance(each, Write)), None)


def carried_out(state, target, now=NOW_S + 1):
    return step(state, replace(written(Write(target)), messages=[received(target, 2, 501.0)]), now)[0]


def test_what_nothing_forces_waits_until_somebody_asks(calm):
    state, target = ticks(calm())
    assert target is None
    assert FORCED_ONLY in sentences_of(state, NOW_S + 1)
    state, target = ticks(asks(state))
    assert (target.assignment, target.applied_ms) == ({A: 1, B: 1}, 5)
    assert target.reason == "looking for a better packing: asked for by sam, me"
    assert not is_forced(target.reason)


def test_what_is_forced_does_not_wait_and_is_no_answer(calm):
    for event, why in ((measured(a=80, b=60, c=30), "c:0"), (measured(a=130, b=20, c=20), "c:0")):
        _, target = ticks(asks(calm()), event=event)
        assert why in target.reason
        assert (is_forced(target.reason), target.applied_ms) == (True, None)


def test_with_auto_nobody_who_asks_waits_until_it_is_time(calm):
    state = replace(calm(apply="auto"), search=VainSearch(NOW_S))
    assert ticks(state)[1] is None
    assert ticks(asks(state))[1].applied_ms == 5


def test_it_is_carried_out_once(calm):
    state, target = ticks(asks(calm()))
    state = carried_out(state, target)
    assert open_request(state.view.desired_state, state.target) is None
    state, _ = step(state, RecordsRead([received(DesiredState(RunState.RUNNING, "sam", 0, 5), 1)]), NOW_S + 2)
    assert ticks(state, NOW_S + 900)[1] is None, "twice in the topic is as once"


def test_where_there_is_nothing_better_the_target_says_so_once(calm):
    state, target = ticks(asks(calm()), event=measured(a=80, b=60))
    assert (target.assignment, target.applied_ms) == (TARGET.assignment, 5)
    assert target.reason.endswith("asked for by sam, me: there is none")
    state = carried_out(state, target)
    assert ticks(state, NOW_S + 900)[1] is None


def test_a_controller_that_dies_before_or_after_leaves_all_to_the_next(calm, synchronized):
    _, target = ticks(asks(calm()))
    for stands, again in ((TARGET, 5), (target, None)):
        _, found = ticks(asks(calm(stands)))
        assert (found.applied_ms if found else None) == again
    state, _ = ticks(asks(calm()))
    state, _ = step(state, WriteFailed("no answer"), NOW_S + 1)
    assert state.name is State.SYNCHRONIZE, "nobody knows: it is read"


def test_another_change_keeps_the_answer(calm):
    """Else a request would be carried out again after the next death."""
    state = asks(calm(replace(TARGET, applied_ms=5)))
    _, target = ticks(state, event=measured(a=80, b=60, c=30))
    assert target.applied_ms == 5


@pytest.mark.parametrize(
    ("changes", "event", "why"),
    [
        ({"apply": "forced_only 01:00-02:00"}, CALM, "until 02:00Z"),
        ({}, measured(a=30, unknown="b"), "the write speed is unknown: b:0"),
        ({}, measured(age_s=99, a=30, b=20), "no measurement is fresh enough"),
        ({"max_rscore_per_hour": 0.1}, CALM, "held back: 0.2 of at most 0.1 Rscore an hour"),
    ],
)
def test_it_waits_for_what_every_better_packing_waits_for(calm, changes, event, why):
    state = asks(calm(**changes))
    state, target = ticks(state, event=event)
    assert target is None
    assert why in request_wait(state, NOW_S + 1)
    assert request_wait(state, NOW_S + 1).startswith("`kgs plan --apply` of sam; me waits: ")
    free = {"apply": "forced_only", "max_rscore_per_hour": None}
    options = replace(state.options, packing=state.options.packing.model_copy(update=free))
    assert ticks(replace(state, options=options), NOW_S + 400)[1] is not None


def test_what_the_budget_holds_back_is_not_packed_at_every_tick(calm):
    state, _ = ticks(asks(calm(max_rscore_per_hour=0.1)))
    first = state.search.at
    for second in range(2, 100):
        state, _ = ticks(state, NOW_S + second)
    assert state.search.at == first == NOW_S + 1


def test_a_pause_takes_the_place_of_what_was_asked(calm):
    state = asks(asks(calm(apply="forced_only 01:00-02:00")), None, 1, wanted=RunState.PAUSED)
    state = asks(state, None, 2)
    assert request_wait(state, NOW_S) == ""
    assert open_request(state.view.desired_state, state.target) is None


@pytest.mark.parametrize(
    ("applies_plan", "outcome"), [(False, ControllerOutcome(Result.NOTHING_TO_DO, FORCED_ONLY)), (True, None)]
)
def test_a_run_that_is_started_for_it_carries_it_out(calm, applies_plan, outcome):
    options = replace(calm().options, until_done=True, launches=False, applies_plan=applies_plan)
    state, _ = begin(options, NOW_S, 0)
    state, _ = step(state, RecordsRead(group()), NOW_S)
    state, target = ticks(state)
    assert state.outcome == outcome
    assert (target.assignment if target else None) == ({A: 1, B: 1} if applies_plan else None)
