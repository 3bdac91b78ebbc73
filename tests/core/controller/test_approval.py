"""Plans that a person approves: what they are called, when they stand, and which consent counts."""

from dataclasses import replace

import pytest

from kgs_core.controller.approval import (
    consent,
    misfit,
    plan_id,
    plan_wait,
    refusal,
    standing_plan,
    was_carried_out,
)
from kgs_core.controller.events import RecordsRead, Tick, Write, WriteFailed
from kgs_core.controller.machine import step
from kgs_core.controller.target_selection import select_target
from kgs_core.controller.transitions import State
from kgs_core.model import ConsumerId
from kgs_core.protocol import Approval, LearntCapacity
from kgs_core.reporting.group_alerts import GroupAlert, group_alerts
from kgs_core.reporting.metric_counters import is_forced
from tests.core.controller.two_readers import TARGET, A, B, C, acts, group, look, measured, notes, received, written

NOW_S = 400.0
"""Later than a better packing is looked for; the clock says 01:30 UTC."""
EXPIRES_S = 600.0


@pytest.fixture
def calm(synchronized, packing):
    """A controller that asks for approval, and whose load one consumer could read."""

    def build(**changes):
        settings = packing(**{"apply": "approve", "approval_expires_s": EXPIRES_S, **changes})
        state = replace(synchronized(packing=settings), wall_ms=(90 * 60 - NOW_S) * 1000.0)
        state, _ = step(state, measured(a=30, b=20), NOW_S)
        return state

    return build


@pytest.fixture
def waiting(calm):
    """It has written its plan, at 500 s of the broker's clock."""

    def build(**changes):
        state, commands = step(calm(**changes), Tick(), NOW_S)
        (write,) = acts(commands)
        state, _ = step(state, replace(written(write), messages=[received(write.plan, 1, 500.0)]), NOW_S)
        return state

    return build


def approved(state, after_s=1.0, at=NOW_S + 1, plan_offset=1, name=None, offset=0):
    """Somebody approves the plan: what comes of it at the next Tick."""
    said = Approval(name or state.view.plan.message.plan_id, plan_offset, "sam", 0)
    state, refused = step(state, RecordsRead([received(said, offset, 500.0 + after_s)]), at)
    state, commands = look(state, measured(a=30, b=20), at)
    return state, (*refused, *commands)


def target_of(commands):
    return next((each.target for each in acts(commands) if isinstance(each, Write)), None)


def test_a_plan_that_nothing_forces_is_proposed_and_not_carried_out(calm):
    state, commands = step(calm(), Tick(), NOW_S)
    (write,) = acts(commands)
    assert (write.target, write.assignments) == (None, ())
    assert (write.plan.moves, write.plan.consumers, write.plan.rscore) == ({B: 1}, 1, 0.2)
    assert (write.plan.target_offset, write.plan.may_be_approved) == (0, True)
    assert state.name is State.SENTINEL


def test_while_it_waits_no_other_one_is_looked_for_though_the_load_varies(waiting):
    state = waiting()
    for second in range(1, 500, 50):
        state, commands = look(state, measured(a=30 + second % 7, b=20 + second % 5), NOW_S + second)
        assert acts(commands) == []
    assert plan_wait(state, NOW_S + 460).startswith(f"plan {state.view.plan.message.plan_id} waits for approval")


def test_what_is_approved_is_carried_out_once(waiting):
    state, commands = approved(waiting())
    target = target_of(commands)
    assert target.assignment == {A: 1, B: 1}
    assert target.reason.startswith("looking for a better packing: plan ")
    assert not is_forced(target.reason)
    assert was_carried_out(target, state.view.plan.message.plan_id)
    (write,) = acts(commands)
    state, _ = step(state, replace(written(write), messages=[received(target, 2, 501.0)]), NOW_S + 2)
    assert standing_plan(state, NOW_S + 2) is None
    _, commands = approved(state, 3, NOW_S + 3, offset=1)
    assert target_of(commands) is None
    assert "the group has changed" in notes(commands, "approval refused")[0]["why"]


@pytest.mark.parametrize(
    "given",
    [{"plan_offset": 0}, {"plan_offset": 2}, {"name": "another"}, {"after_s": EXPIRES_S + 1}],
    ids=["of an earlier record", "of a later record", "of another plan", "after its end by the broker's clock"],
)
def test_a_consent_to_something_else_is_refused(waiting, given):
    state, commands = approved(waiting(), **given)
    assert target_of(commands) is None
    assert notes(commands, "approval refused")
    assert consent(state.view) is None


@pytest.mark.parametrize("plan_offset", [0, 9], ids=["an earlier plan", "one that was never proposed"])
def test_an_approval_of_something_else_takes_none_away(waiting, plan_offset):
    """Two people look at two times: what the one writes last must not undo what the other has approved."""
    state = waiting(forced_moves_only_utc=["01:31-01:33"])
    state, _ = approved(state, at=NOW_S + 61)
    state, commands = approved(state, 2.0, NOW_S + 62, plan_offset, "another", offset=1)
    assert notes(commands, "approval refused")
    _, commands = look(state, measured(a=30, b=20), NOW_S + 180)
    assert target_of(commands) is not None


def test_approvals_of_plans_that_are_over_are_forgotten(waiting):
    view = waiting().view
    for offset in range(5):
        view = view.take(received(Approval("earlier", 0, "sam", 0), 2 * offset, 501.0), 0.0)
        view = view.take(received(Approval(f"earlier{offset}", 0, "sam", 0), 2 * offset + 1, 501.0), 0.0)
    assert [one.offset for one in view.approvals.values()] == [9]
    assert view.approval.offset == 9


def test_a_consent_in_time_is_of_no_use_once_the_plan_has_ended(waiting):
    state, commands = approved(waiting(), at=NOW_S + EXPIRES_S + 1)
    assert target_of(commands) is None
    (write,) = acts(commands)
    assert write.plan.plan_id == state.view.plan.message.plan_id, "the same plan has the same name"
    state, _ = step(state, replace(written(write), messages=[received(write.plan, 2, 1200.0)]), NOW_S + EXPIRES_S + 1)
    _, commands = look(state, measured(a=30, b=20), NOW_S + EXPIRES_S + 2)
    assert target_of(commands) is None, "the earlier consent is not for the later record"


def test_a_plan_goes_by_the_learnt_capacity_and_leaves_it_in_its_target(synchronized, packing):
    """Consumers read more than is configured: what is packed up to that must not be taken for an overload."""
    learnt = LearntCapacity(120 * 1.5 * 2.3 / 2, "", "")
    settings = packing(apply="approve", approval_expires_s=EXPIRES_S, capacity="learnt")
    state = synchronized(group(replace(TARGET, learnt=learnt)), packing=settings)
    state = replace(state, wall_ms=(90 * 60 - NOW_S) * 1000.0)
    state, commands = look(state, measured(a=75, b=60), NOW_S)
    (write,) = acts(commands)
    state, _ = step(state, replace(written(write), messages=[received(write.plan, 1, 500.0)]), NOW_S)
    said = Approval(write.plan.plan_id, 1, "sam", 0)
    state, commands = step(state, RecordsRead([received(said, 0, 501.0)]), NOW_S + 1)
    assert notes(commands, "approval refused") == []
    _, commands = look(state, measured(a=75, b=60), NOW_S + 1)
    target = target_of(commands)
    assert target.assignment == {A: 1, B: 1}
    assert (target.capacity, target.learnt) == (pytest.approx(150.0), learnt)


def test_that_an_approved_plan_was_not_carried_out_is_said_once(waiting):
    """It waited for a window's end, and something was forced, or its time was over: the person was told otherwise."""
    state, _ = approved(waiting(forced_moves_only_utc=["01:31-01:59"]), at=NOW_S + 61)
    over, commands = step(state, Tick(), NOW_S + EXPIRES_S + 1)
    (said,) = notes(commands, "approved plan not carried out")
    assert "has expired" in said["why"]
    assert notes(step(over, Tick(), NOW_S + EXPIRES_S + 2)[1], "approved plan not carried out") == []
    state, commands = look(state, measured(a=80, b=60, c=30), NOW_S + 70)
    (write,) = acts(commands)
    _, commands = step(state, replace(written(write), messages=[received(write.target, 2, 510.0)]), NOW_S + 70)
    (said,) = notes(commands, "approved plan not carried out")
    assert "the group has changed" in said["why"]


def test_of_a_plan_that_was_carried_out_nothing_of_the_kind_is_said(waiting):
    state, commands = approved(waiting())
    (write,) = acts(commands)
    state, more = step(state, replace(written(write), messages=[received(write.target, 2, 501.0)]), NOW_S + 2)
    _, commands = look(state, measured(a=30, b=20), NOW_S + 3)
    assert notes((*more, *commands), "approved plan not carried out") == []


def test_what_is_forced_goes_first(waiting):
    _, commands = look(waiting(), measured(a=80, b=60, c=30), NOW_S + 1)
    assert "partition without owner: c:0" in target_of(commands).reason


def test_a_plan_that_would_overload_is_held_no_more(waiting):
    state = waiting()
    _, commands = look(state, measured(a=70, b=60), NOW_S + 1)
    assert target_of(commands) is None
    assert standing_plan(step(state, measured(a=70, b=60), NOW_S + 1)[0], NOW_S + 1) is None
    assert misfit(state.view.plan.message, TARGET, {A: 70.0, B: 50.0}, 120.0) == "", "at the limit"
    assert misfit(state.view.plan.message, TARGET, {A: 70.0, B: 51.0}, 120.0).startswith("consumer 1 ")
    assert "c:0" in misfit(state.view.plan.message, TARGET, {A: 7.0, B: 5.0, C: 1.0}, 120.0)


@pytest.mark.parametrize(
    ("event", "why"),
    [(measured(a=30, unknown="b"), "how fast it grows is not known: b:0"), (measured(age_s=99, a=30, b=20), "no mea")],
)
def test_an_approved_plan_waits_for_what_is_not_known(waiting, event, why):
    state = waiting()
    said = Approval(state.view.plan.message.plan_id, 1, "sam", 0)
    state, _ = step(state, RecordsRead([received(said, 0, 501.0)]), NOW_S + 1)
    state, commands = look(state, event, NOW_S + 1)
    assert target_of(commands) is None
    assert why in plan_wait(state, NOW_S + 1)
    _, commands = look(state, measured(a=30, b=20), NOW_S + 2)
    assert target_of(commands) is not None


def test_an_approved_plan_waits_for_the_end_of_a_quiet_window(waiting):
    state = waiting(forced_moves_only_utc=["01:31-01:33"])
    state, commands = approved(state, at=NOW_S + 61)
    assert target_of(commands) is None
    assert plan_wait(state, NOW_S + 61).endswith("until 01:33Z")
    _, commands = look(state, measured(a=30, b=20), NOW_S + 180)
    assert target_of(commands) is not None


def test_nothing_is_carried_out_while_the_plan_is_a_recommendation(waiting):
    _state, commands = approved(waiting(apply="forced_only"))
    assert target_of(commands) is None
    assert "recommendation only" in notes(commands, "approval refused")[0]["why"]


def test_a_plan_of_another_setting_is_not_held(waiting, packing):
    state = waiting()
    for apply, found in (("approve", True), ("forced_only", False), ("auto", False)):
        options = replace(state.options, packing=packing(apply=apply))
        assert (standing_plan(replace(state, options=options), NOW_S + 1) is not None) is found
    auto = replace(state, options=replace(state.options, packing=packing()), looked_at=None)
    assert select_target(auto, NOW_S + 1).target is not None


def test_a_write_of_a_plan_whose_end_nobody_knows_is_looked_up(calm):
    state, _ = step(calm(), Tick(), NOW_S)
    state, _ = step(state, WriteFailed("no answer"), NOW_S + 1)
    assert state.name is State.SYNCHRONIZE


def test_a_person_is_asked_while_it_waits_and_no_longer(waiting):
    def asked(state, now):
        return group_alerts(state, (), now)[GroupAlert.NO_PLAN_WAITS]

    state = waiting(forced_moves_only_utc=["01:31-01:33"])
    assert asked(state, NOW_S + 61)[0].startswith(f"plan {state.view.plan.message.plan_id} waits for approval")
    assert asked(state, NOW_S + EXPIRES_S + 1) == ()
    assert asked(approved(state, at=NOW_S + 61)[0], NOW_S + 61) == ()
    assert asked(waiting(apply="forced_only"), NOW_S + 1) == ()


def test_what_the_command_says(waiting):
    view = waiting().view
    name = view.plan.message.plan_id
    assert refusal(view, name, 1.0) == ""
    assert "has expired" in refusal(view, name, EXPIRES_S + 1)
    assert refusal(view, "other", 1.0) == f"plan {name} has been proposed since"
    assert refusal(replace(view, plan=None), name, 1.0) == "no such plan waits"


def test_the_name_is_of_the_plan_and_of_the_target_it_was_made_against():
    name = plan_id(3, {A: ConsumerId(1), B: ConsumerId(1)}, ())
    assert name == plan_id(3, {B: ConsumerId(1), A: ConsumerId(1)}, ())
    others = {
        plan_id(4, {A: ConsumerId(1), B: ConsumerId(1)}, ()),
        plan_id(3, {A: ConsumerId(1), B: ConsumerId(2)}, ()),
    }
    assert name not in others
    assert len(name) == 12
