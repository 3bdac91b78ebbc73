"""Plans that nothing forces, where `packing.apply` does not let them be carried out at once.

The controller proposes such a plan by one record beside the Target, and holds it: while it stands, nobody looks for
another one, so noise in the measurements gives no new plan. Who reads the topics knows it, and by the functions here
whether it still stands and whether it is approved: a new controller, a rebalance run, a sensor, `kgs status`.

A plan stands while the Target does that it was made against, until it has expired, and while it fits the load. So
whatever is forced meanwhile (a death, an overload, another partition) ends it: that writes a Target. An approval names
the record that proposed the plan, by its offset, and counts only if the broker had it before the plan's end. So one
that comes late, twice, or after the group has changed does nothing, and an equal plan that is proposed later needs
another one. When it is carried out, a Target is written, by the controller alone, which ends the plan: hence once.
"""

import hashlib
import math
from collections.abc import Collection

from kgs_core.controller.capacity import packing_in_use
from kgs_core.controller.events import Note
from kgs_core.controller.group_view import GroupView
from kgs_core.controller.measuring import remembered
from kgs_core.controller.plain_text import printable, ranges
from kgs_core.controller.rolling_replacement import is_trying
from kgs_core.controller.state import ControllerState
from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, WriteSpeeds
from kgs_core.packing import rscore
from kgs_core.planning.overload import consumer_loads
from kgs_core.planning.plan import Plan
from kgs_core.planning.rebalance_budget import moved_within_an_hour, over_budget
from kgs_core.planning.triggers import Reason
from kgs_core.protocol import Approval, ProposedPlan, Received, RunState, Target

_ID_LENGTH = 12


def plan_id(target_offset: int, assignment: Assignment, spares: Collection[ConsumerId]) -> str:
    """Name of a plan: the same for the same one against the same Target."""
    digest = hashlib.sha256(f"{target_offset} {sorted(spares)}".encode())
    for partition, consumer in sorted(assignment.items()):
        digest.update(f"\n{partition}={consumer}".encode())
    return digest.hexdigest()[:_ID_LENGTH]


def propose(state: ControllerState, plan: Plan, reason: str, now: float) -> ProposedPlan | None:
    """The record of a plan that is not to be carried out now; None: there is no Target that it could be made against.

    Args:
        state: with the measurement that the plan was made by.
        plan: it has each partition of the Target, and no other one.
        reason: why it was made.
        now: steady clock, seconds.
    """
    stands, measured, packing = state.view.target, state.measured, state.options.packing
    if stands is None or measured is None:
        return None
    before = stands.message.assignment
    moves = {p: consumer for p, consumer in plan.target.items() if before.get(p) != consumer}
    speeds = remembered(measured.load, stands.message).write_speeds()
    return ProposedPlan(
        plan_id=plan_id(stands.offset, plan.target, plan.spares),
        target_offset=stands.offset,
        algorithm=plan.algorithm,
        moves=moves,
        spares=plan.spares,
        speeds={p: speeds[p] for p in moves},
        rscore=plan.rscore,
        consumers=plan.consumers,
        reason=reason,
        expires_after_s=packing.approval_expires_s,
        may_be_approved=packing.apply == "approve",
        time_ms=state.time_ms(now),
        measurement_offset=measured.measurement_offset,
    )


def assignment_after(target: Target, plan: ProposedPlan) -> Assignment:
    """Who would read what by a plan that was made against this Target."""
    return {**target.assignment, **plan.moves}


def plan_end(view: GroupView, age_s: float) -> str:
    """Why the newest plan stands no more; empty: it does, as far as the topics tell.

    Args:
        view: what the topics say.
        age_s: of the plan's record.
    """
    plan, target = view.plan, view.target
    if plan is None or target is None:
        return "no plan has been proposed"
    if target.offset != plan.message.target_offset:
        return f"the group has changed since it was made: {printable(target.message.reason)}"
    if age_s > plan.message.expires_after_s:
        return f"it has expired: {plan.message.expires_after_s:g} s are over"
    return ""


def misfit(plan: ProposedPlan, target: Target, speeds: WriteSpeeds, limit: BytesPerSecond) -> str:
    """Why a plan fits the load no more; empty: it does. A load between the two capacities is no reason.

    Args:
        plan: made against `target`.
        target: that stands.
        speeds: of each partition that there is, bytes/s.
        limit: `consumer_capacity_bytes_per_s`, the one in use.
    """
    if changed := speeds.keys() ^ target.assignment.keys():
        return f"topics or partitions have changed: {ranges(changed)}"
    before, after = (
        {consumer: load - limit for consumer, load in consumer_loads(assignment, speeds).items() if load > limit}
        for assignment in (target.assignment, assignment_after(target, plan))
    )
    if math.fsum(after.values()) <= math.fsum(before.values()):
        return ""
    worst = max(after, key=lambda consumer: (after[consumer], -consumer))
    return f"consumer {worst} would be given more than consumer_capacity now"


def consent(view: GroupView) -> Received[Approval] | None:
    """The approval of the newest plan, if there is one that counts: of this very record, and before its end."""
    plan = view.plan
    approval = view.approvals.get((plan.message.plan_id, plan.offset)) if plan is not None else None
    if plan is None or approval is None or not plan.message.may_be_approved:
        return None
    after_ms = approval.timestamp_ms - plan.timestamp_ms
    return approval if after_ms <= plan.message.expires_after_s * 1000 else None


def refusal(view: GroupView, name: str, age_s: float, offset: int | None = None) -> str:
    """Why a plan cannot be approved; empty: it can, or is approved already.

    Args:
        view: what the topics say.
        name: id of the plan.
        age_s: of the newest plan's record.
        offset: of the record that is meant; None: the newest.
    """
    plan = view.plan
    if plan is not None and plan.message.plan_id == name and offset in (None, plan.offset):
        is_recommended = not plan.message.may_be_approved
        return plan_end(view, age_s) or (
            "it is a recommendation only: packing.apply of the controller is forced_only" if is_recommended else ""
        )
    if plan is not None and not plan_end(view, age_s):
        again = " again, which needs an approval of its own" if plan.message.plan_id == name else ""
        return f"plan {plan.message.plan_id} has been proposed since{again}"
    return "no such plan waits"


def was_carried_out(target: Target | None, name: str) -> bool:
    """Whether one of the last changes was the plan of this name."""
    return target is not None and any(_carried_out(name) in change.reason for change in target.history)


def reason_of(plan: ProposedPlan, approval: Approval) -> str:
    """Reason of the Target that an approved plan becomes."""
    by = printable(approval.by).replace(";", ",")  # a reason's parts are told apart by it
    return f"{Reason.TIMEOUT}: {_carried_out(plan.plan_id)} by {by}"


def standing_plan(state: ControllerState, now: float) -> ProposedPlan | None:
    """The plan that a controller with these settings holds; None: there is none, so it may look for one."""
    plan, target, packing = state.view.plan, state.target, state.options.packing
    if plan is None or target is None or plan.message.may_be_approved != (packing.apply == "approve"):
        return None
    if packing.apply == "auto" or plan_end(state.view, now - (state.plan_at or 0.0)):
        return None
    if state.measured is not None and state.is_fresh(now):
        speeds = remembered(state.measured.load, target).packed_speeds(packing.catch_up_s)
        if misfit(plan.message, target, speeds, packing_in_use(state).consumer_capacity_bytes_per_s):
            return None
    return plan.message


def without_effect(state: ControllerState, now: float) -> str:
    """Why the newest approval brings nothing about; empty: it counts."""
    approval = state.view.approval
    if approval is None:
        return "there is none"
    said, age_s = approval.message, now - (state.plan_at or 0.0)
    if why := refusal(state.view, said.plan_id, age_s, said.plan_offset):
        return why
    if consent(state.view) is None:
        return "it came after the plan's end"
    is_held = standing_plan(state, now) is not None
    return "" if is_held else "the plan fits the load no more, or the settings have changed"


def note_refusal(before: ControllerState, state: ControllerState, now: float) -> tuple[Note, ...]:
    """That an approval which has just come has no effect, and why."""
    approval = state.view.approval
    if approval is None or approval == before.view.approval or not (why := without_effect(state, now)):
        return ()
    said = approval.message
    return (Note("approval refused", {"plan": said.plan_id, "by": printable(said.by), "why": why}),)


def approved_plan(state: ControllerState, now: float) -> tuple[int | None, str]:
    """Offset of the plan that waits and is approved, and why the one that did at the last step was not carried out."""
    plan, before = state.view.plan, state.approved_plan
    why = plan_end(state.view, now - (state.plan_at or 0.0))
    if plan is None or not why:
        return (plan.offset if plan is not None and consent(state.view) is not None else None), ""
    is_lost = plan.offset == before and not was_carried_out(state.target, plan.message.plan_id)
    return None, f"plan {plan.message.plan_id}: {why}" if is_lost else ""


def postponed(state: ControllerState, plan: ProposedPlan, now: float) -> str:
    """Why an approved plan that stands is not carried out yet; empty: it is to be carried out now."""
    target, packing, time_ms = state.target, state.options.packing, state.time_ms(now)
    if target is None or state.measured is None or not state.is_fresh(now):
        return "no measurement is fresh enough"
    if until := packing.forced_only_until(time_ms):
        return f"nothing is moved that need not (packing.forced_moves_only_utc) until {until}"
    load = remembered(state.measured.load, target)
    speeds = load.write_speeds()
    joined = state.view.joined(state.suspects())
    unread = speeds.keys() - state.view.current().keys()
    absent = {*plan.moves.values()} - joined
    if load.unknown or unread:
        what = "how fast it grows is not known" if load.unknown else "what nobody reads comes first"
        return f"{what}: {ranges(load.unknown or unread)}"
    if absent or is_trying(state.view, target, joined):
        return f"consumer {min(absent)} has not joined" if absent else "a replacement goes on"
    capacity = packing_in_use(state).packing_capacity_bytes_per_s
    price = rscore(target.assignment, assignment_after(target, plan), speeds, capacity)
    held = over_budget(price, moved_within_an_hour(target.history, time_ms), packing.max_rscore_per_hour)
    return str(held) if held is not None else ""


def plan_wait(state: ControllerState, now: float) -> str:
    """What becomes of the plan that is held, for people; empty: none is, or it is carried out now."""
    plan = standing_plan(state, now)
    if plan is None or state.target is None or state.desired_run_state is not RunState.RUNNING:
        return ""
    before = len(set(state.target.assignment.values()))
    change = f"consumers: {plan.consumers} instead of {before}, {len(plan.moves)} to move, Rscore {plan.rscore:.3f}"
    if not plan.may_be_approved:
        return f"plan {plan.plan_id} is recommended, and packing.apply is forced_only: {change}"
    approval = consent(state.view)
    if approval is None:
        return f"plan {plan.plan_id} waits for approval (kgs approve {plan.plan_id}): {change}"
    wait = postponed(state, plan, now)
    by = printable(approval.message.by)
    return f"plan {plan.plan_id} is approved by {by}, and waits: {wait}" if wait else ""


def _carried_out(name: str) -> str:
    return f"plan {name} approved"
