"""The Group Management state: what the group shall be, what is missing, and when a change is over."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from kgs_core.control.controller_state import ControllerState
from kgs_core.control.reconcile import Changes, converged, reconcile
from kgs_core.control.upsets import Condition, Upset
from kgs_core.control.view import GroupView
from kgs_core.model import Assignment, ConsumerId
from kgs_core.protocol import Member, Order, RunState, Target


@dataclass(frozen=True, slots=True)
class Goal:
    """What the group shall be.

    Attributes:
        desired: who shall read what.
        may_stay: consumers that are not told to end.
        joined: consumers that have joined when it is reached.
    """

    desired: Assignment
    may_stay: Collection[ConsumerId]
    joined: Collection[ConsumerId]


def goal_of(state: ControllerState, target: Target | None) -> Goal | None:
    """By the Target and by what people wish; None: neither says anything, so nothing is changed."""
    match state.wish:
        case RunState.STOPPED:
            return Goal({}, (), ())
        case RunState.PAUSED:
            return Goal({}, state.view.newest().keys(), state.view.joined(state.suspects()))
        case RunState.RUNNING:
            return Goal(target.assignment, target.consumers, target.consumers) if target else None


def orders_for(state: ControllerState, target: Target | None) -> Changes:
    """What is to be written so that the group comes one step nearer to `target`."""
    goal = goal_of(state, target)
    if goal is None:
        return Changes()
    changes = reconcile(state.view, goal.desired, goal.may_stay, state.suspects(), strict=state.strict)
    doubled = {member: Order(member, retire=True) for member in _doubled(state.view)}
    orders = [order for order in changes.orders if order.member not in doubled]
    return replace(changes, orders=(*orders, *doubled.values()))


def is_settled(state: ControllerState) -> bool:
    """Whether the group is as it shall be, and nothing is left to write."""
    goal = goal_of(state, state.target)
    if goal is None:
        return True
    suspects = state.suspects()
    # One that is silent and wanted nowhere cannot be told to end: it would keep the group waiting for ever
    counted = {i: m for i, m in state.view.members.items() if i not in suspects or m.member.consumer in goal.joined}
    has_come = converged(replace(state.view, members=counted), goal.desired, goal.joined, suspects)
    return has_come and not orders_for(state, state.target)


def upsets_now(state: ControllerState, now: float) -> frozenset[Upset]:
    """What is amiss; nothing is while people want the group paused or stopped."""
    if state.wish is not RunState.RUNNING:
        return frozenset()
    partitions = state.measured.load.write_speeds().keys() if state.measured and state.is_fresh(now) else None
    return Condition(state.view, state.suspects(), state.starts(now), state.strict).upsets(partitions)


def _doubled(view: GroupView) -> Iterator[Member]:
    """Older processes of a consumer that hold nothing.

    One that never was ordered anything does not learn of the newer one by itself; and the fleet may know nothing of
    it, so that no Stop reaches it.
    """
    newest = {member.member.incarnation for member in view.newest().values()}
    for incarnation, member in view.members.items():
        is_there = member.report is not None and not member.ended
        if incarnation not in newest and is_there and not member.retiring and not member.possibly_owned:
            yield member.member
