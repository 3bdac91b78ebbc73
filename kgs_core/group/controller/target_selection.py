"""The Reassign state: which Target is due, if any."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgs_core.group.controller.capacity import capacity_in_use, classes_after, classes_planned, packing_in_use
from kgs_core.group.controller.change_progress import with_times
from kgs_core.group.controller.idleness import blind_load, due_sleep, waking_reason
from kgs_core.group.controller.measuring import remembered
from kgs_core.group.controller.plan_request import ASKED, open_request, since_packing_s
from kgs_core.group.controller.state import ControllerState
from kgs_core.group.controller.target_size import UnwritableTarget, unwritable
from kgs_core.group.protocol import Change, DesiredState, Idle, RunState, Target
from kgs_core.group.view.group_health import GroupHealth
from kgs_core.group.view.plain_text import printable
from kgs_core.group.view.reconcile import converged
from kgs_core.group.view.restart_policy import Starts
from kgs_core.group.view.rolling_replacement import Replacement, fulfilled_ms, outdated, plan_replacement
from kgs_core.model import Assignment, ConsumerId
from kgs_core.packing import rebalanced, rscore
from kgs_core.planning.group import Group
from kgs_core.planning.load import Load
from kgs_core.planning.placement import to_joined
from kgs_core.planning.rebalance_budget import HeldBack, moved_within_an_hour, with_change
from kgs_core.planning.shares import shares_of
from kgs_core.planning.triggers import Reason, RunDecision, Watched, decide, is_forced

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class TargetDecision:
    """Decision after a look at the group.

    Attributes:
        target: the Target that is due; None: the present one stands.
        is_measured: it is due because of what was measured.
        is_urgent: until it is written, somebody is above capacity, or what somebody could read is unread.
        looked_in_vain: a better packing was looked for, and there is none, or none that may be made now.
        held_back: a better one that must wait, or cannot be written.
        overloaded: how many partitions and consumers do not fit below the capacity.
    """

    target: Target | None = None
    is_measured: bool = False
    is_urgent: bool = False
    looked_in_vain: bool = False
    held_back: HeldBack | UnwritableTarget | None = None
    moved: int = 0
    overloaded: int = 0


def select_target(state: ControllerState, now: float) -> TargetDecision:
    """Whether another Target is due: by an exit condition, to replace a consumer, or because spares lack.

    Nothing is packed while the group is paused or stopped on request, or by a stale measurement. Without a measurement,
    an idle consumer that has joined still takes over the share of a missing one. A Target that no record can hold is
    held back: the present one stands.
    """
    found = _due(state, now)
    too_large = unwritable(found.target) if found.target is not None else None
    return found if too_large is None else TargetDecision(looked_in_vain=True, held_back=too_large)


def _due(state: ControllerState, now: float) -> TargetDecision:
    if state.view.run_state is not RunState.RUNNING:
        return TargetDecision()
    health = _health(state, now)
    history = state.target.history if state.target else ()
    watched = replace(_watched(state, health, now), moved_rscore=moved_within_an_hour(history, state.time_ms(now)))
    if (idle := due_sleep(state, now)) is not None:
        return TargetDecision(_asleep(state, idle, watched, health.starts, now))
    found = _awake(state, watched, now)
    if found.target is None and state.target is not None:
        group = watched.group()
        are_read = health.have_readers(state.target.assignment)
        taken = None if are_read else _taken_over(state, state.target, watched, group)
        step = (
            taken
            or _replaced(state, state.target, group)
            or _with_spares(state, state.target, group)
            or _with_twins(state, state.target)
            or _with_terms(state, state.target)
            or _with_fulfilment(state, state.target)
            or _with_answer(state, state.target, found)
        )
        if step is not None:
            target = _target_of(step, state, state.target, health.starts, now)
            return replace(found, target=target, is_urgent=step is taken, moved=_moved(step, state))
    return found


def _awake(state: ControllerState, watched: Watched, now: float) -> TargetDecision:
    """The packing that is due; of a group that sleeps, only what wakes it."""
    measured, waking = state.fresh(now) or blind_load(state, now), waking_reason(state, now)
    if state.target is not None and state.target.idle is not None and not waking:
        return TargetDecision(looked_in_vain=watched.since_packing_s >= state.options.packing.sentinel_timeout_s)
    return _packed(state, measured, watched, now, waking) if measured is not None else TargetDecision()


def _asleep(state: ControllerState, idle: Idle, watched: Watched, starts: Starts, now: float) -> Target | None:
    """A Target by which nobody reads; spares stay, so that one of them can read at once."""
    measured = state.fresh(now)
    if state.target is None or measured is None:
        return None
    spares = watched.group().choose_spares((), state.options.packing.spare_consumers)
    step = Replacement({}, spares, "idle: everything is read")
    bare = replace(
        state.target, speeds={}, pinned=frozenset(), measurement_offset=measured.measurement_offset, idle=idle
    )
    return _target_of(step, state, bare, starts, now)


def unread_to_place(state: ControllerState, now: float) -> str:
    """Unread partitions that the Target gives to missing consumers, although others could read them.

    Empty: there are none.
    """
    if state.target is None or state.view.run_state is not RunState.RUNNING:
        return ""
    stands, health = state.target.assignment, _health(state, now)
    if health.have_readers(stands):
        return ""  # as ever but after deaths, and at each event of a change
    placed = _placed(state, state.target, _watched(state, health, now), now)
    found = [str(p) for p, consumer in sorted(placed.items()) if stands[p] != consumer]
    more = [f"{len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return ", ".join(found[:_SHOWN] + more)


def watched_group(state: ControllerState, now: float) -> Watched:
    """The group as the Sentinel sees it; without what has moved of late."""
    return _watched(state, _health(state, now), now)


def _watched(state: ControllerState, health: GroupHealth, now: float) -> Watched:
    return health.watched(since_packing_s(state, now))


def _health(state: ControllerState, now: float) -> GroupHealth:
    return GroupHealth(state.view, state.suspects(), state.starts(now), state.strict)


def _placed(state: ControllerState, target: Target, watched: Watched, now: float) -> Assignment:
    """The Target's shares, with unread partitions given to consumers that have joined."""
    packing, readers, measured = packing_in_use(state), watched.readers(), state.fresh(now)
    capacity_of = packing.classes_of(watched.classes).capacity(packing.packing_capacity)
    if measured is None:
        return to_joined(target.assignment, readers, None, capacity_of)
    speeds = remembered(measured, target).write_speeds()
    planned = {p: consumer for p, consumer in target.assignment.items() if p in speeds}
    return to_joined(planned, readers, speeds, capacity_of)


def _packed(state: ControllerState, measured: Load, watched: Watched, now: float, waking: str) -> TargetDecision:
    load = remembered(measured, state.target)
    packing, learnt = capacity_in_use(state)
    if isinstance(held_back := state.search.held_back, UnwritableTarget):
        is_due = state.since_packing_s(now) >= packing.sentinel_timeout_s
        if len(load.write_speeds()) >= held_back.partitions and not is_due:
            return TargetDecision(held_back=held_back)  # to pack so many at each look would come to the same
    decision = decide(load, watched, packing, state.options.new_random)
    stands = state.target.assignment if state.target else {}
    if decision.plan is None or decision.plan.target == stands:
        # A run for the plan that stands needs assignments, and no Target
        return TargetDecision(looked_in_vain=_has_timed_out(decision), held_back=decision.held_back)
    plan, reason = decision.plan, waking or "; ".join(str(condition) for condition in decision.conditions)
    request = _request(state) if _has_timed_out(decision) else None
    target = Target(
        algorithm=plan.algorithm,
        assignment=plan.target,
        spares=plan.spares,
        speeds=load.write_speeds(),
        capacity=plan.capacity,
        rscore=plan.rscore,
        reason=f"{reason}: {_asked_by(request)}" if request is not None else reason,
        known=state.view.known,
        quarantined=tuple(sorted(watched.failing)),
        time_ms=state.time_ms(now),
        measurement_offset=measured.measurement_offset,
        pinned=plan.pinned | (load.unknown & watched.group().current.keys()),
        learnt=learnt,
        applied_ms=request.apply_ms if request is not None else state.target.applied_ms if state.target else None,
        classes=classes_planned(plan, packing, state.target, watched),
    )
    return TargetDecision(
        _completed(target, state, len(plan.moves)),
        is_measured=True,
        is_urgent=is_forced(decision.conditions),
        moved=len(plan.moves),
        overloaded=len(plan.overloaded),
    )


def _has_timed_out(decision: RunDecision) -> bool:
    return any(condition.reason is Reason.TIMEOUT for condition in decision.conditions)


def _taken_over(state: ControllerState, target: Target, watched: Watched, group: Group) -> Replacement | None:
    """The present Target, with whole shares of missing consumers given to idle ones that have joined."""
    classes = packing_in_use(state).classes_of(watched.classes)
    assignment = to_joined(target.assignment, watched.readers(), None, classes.share)
    taken = {p: consumer for p, consumer in assignment.items() if target.assignment[p] != consumer}
    if not taken:
        return None
    takers, absent = sorted(set(taken.values())), sorted({target.assignment[p] for p in taken})
    spares = group.choose_spares(set(assignment.values()), state.options.packing.spare_consumers)
    reason = f"{_some(takers)} takes over the unread partitions of {_some(absent)}"
    return Replacement(assignment, spares, reason)


def _some(consumers: Sequence[ConsumerId]) -> str:
    return f"consumer {', '.join(map(str, consumers))}"


def _replaced(state: ControllerState, target: Target, group: Group) -> Replacement | None:
    if not outdated(state.view, target.consumers):
        return None
    if not converged(state.view, target.assignment, target.consumers, state.suspects()):
        return None
    return plan_replacement(state.view, target, state.options.packing.spare_consumers, group)


def _with_spares(state: ControllerState, target: Target, group: Group) -> Replacement | None:
    count = state.options.packing.spare_consumers
    if outdated(state.view, target.consumers):
        count = max(1, count)  # one more for a while: see plan_replacement
    used = shares_of(target.assignment).keys()
    spares = group.choose_spares(used, count)
    if len(group.usable_spares - used) == len(spares) == len(target.spares):
        return None
    return Replacement(target.assignment, spares, f"spares: {len(spares)} of {count}, {len(target.spares)} before")


def _with_twins(state: ControllerState, target: Target) -> Replacement | None:
    """The present Target, if it does not list the newer of two living processes of a consumer.

    Which one is newer must stay known longer than their first reports exist.
    """
    listed = {member.incarnation for member in target.known}
    older = {m.member.consumer for i, m in state.view.members.items() if i in listed and not m.ended}
    twins = sorted(c for c, m in state.view.newest().items() if c in older and m.member.incarnation not in listed)
    if not twins:
        return None
    reason = f"another process of consumer {', '.join(map(str, twins))}"
    return Replacement(target.assignment, target.spares, reason)


def _with_terms(state: ControllerState, target: Target) -> Replacement | None:
    """The present Target, if its terms exclude this controller's configuration, or a wanted one that is needed.

    While no consumer is missing, a wanted configuration enters the Target with the first replacement.
    """
    is_whole = converged(state.view, target.assignment, target.consumers, state.suspects())
    last, new = target.terms, state.options.terms if is_whole else state.terms()
    if last is None or new is None or last.admit(new):
        return None
    return Replacement(target.assignment, target.spares, "who may join has changed: another configuration")


def _with_fulfilment(state: ControllerState, target: Target) -> Replacement | None:
    """The present Target, once no consumer is left to replace; written before others are started."""
    if fulfilled_ms(state.view, state.suspects()) == target.fulfilled_ms:
        return None
    return Replacement(target.assignment, target.spares, "replacement: no consumer is outdated")


def _with_answer(state: ControllerState, target: Target, found: TargetDecision) -> Replacement | None:
    """The present Target, in answer to a request for a better packing, if there is none."""
    request = _request(state)
    if request is None or not found.looked_in_vain or found.held_back is not None:
        return None
    reason = f"{Reason.TIMEOUT}: {_asked_by(request)}: there is none"
    return Replacement(target.assignment, target.spares, reason, request.apply_ms)


def _request(state: ControllerState) -> DesiredState | None:
    return open_request(state.view.desired_state, state.target)


def _asked_by(request: DesiredState) -> str:
    return f"{ASKED}{printable(request.by).replace(';', ',')}"  # a reason's parts are told apart by it


def _target_of(step: Replacement, state: ControllerState, target: Target, starts: Starts, now: float) -> Target:
    """A Target packed like the present one: same speeds, same capacity."""
    consumers = {*step.assignment.values(), *step.spares}
    new = replace(
        target,
        assignment=step.assignment,
        spares=step.spares,
        rscore=rscore(target.assignment, step.assignment, target.speeds, target.capacity),
        reason=step.reason,
        known=state.view.known,
        quarantined=tuple(sorted(starts.quarantined - consumers)),
        time_ms=state.time_ms(now),
        applied_ms=step.applied_ms or target.applied_ms,
        classes=classes_after(step, state, target, starts.quarantined - consumers),
    )
    return _completed(new, state, _moved(step, state))


def _moved(step: Replacement, state: ControllerState) -> int:
    before: Assignment = state.target.assignment if state.target else {}
    return len(rebalanced(before, step.assignment))


def _completed(target: Target, state: ControllerState, moved: int) -> Target:
    before: Sequence[Change] = state.target.history if state.target else ()
    if before:
        before = (*before[:-1], with_times(before[-1], state))
    readers: set[ConsumerId] = set(target.assignment.values())
    change = Change(target.time_ms, target.reason, moved, target.rscore, len(readers))
    fulfilled = fulfilled_ms(state.view, state.suspects())
    return replace(target, history=with_change(before, change), terms=state.terms(), fulfilled_ms=fulfilled)
