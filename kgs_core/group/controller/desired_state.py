"""The Group Management state: the group's goal, what is missing, and when a change is over."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kgs_core.group.controller.idleness import waking_reason
from kgs_core.group.controller.state import ControllerState
from kgs_core.group.protocol import Incarnation, Member, MemberAssignment, RunState, Target
from kgs_core.group.view.events import Write
from kgs_core.group.view.group_health import Disruption, GroupHealth
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.reconcile import converged, reconcile
from kgs_core.group.view.rolling_replacement import ReplacementWait, next_hand_over, replacement_wait
from kgs_core.model import Assignment, ConsumerId, TopicPartition


@dataclass(frozen=True, slots=True)
class Goal:
    """Goal of the group.

    Attributes:
        desired: who shall read what.
        may_stay: consumers that are not told to end.
        joined: consumers that have joined when it is reached.
        trials: partitions that a consumer opens as a trial, before their owner lets them go.
    """

    desired: Assignment
    may_stay: Collection[ConsumerId]
    joined: Collection[ConsumerId]
    trials: Mapping[ConsumerId, frozenset[TopicPartition]] = field(default_factory=dict)


def goal_of(view: GroupView, target: Target | None, suspects: frozenset[Incarnation]) -> Goal | None:
    """Goal by `target`, which may still have to be written, and by the desired state; None: no change."""
    match view.run_state:
        case RunState.STOPPED:
            return Goal({}, (), ())
        case RunState.PAUSED:
            return Goal({}, view.newest().keys(), view.joined(suspects))
        case RunState.RUNNING:
            if target is None:
                return None
            return Goal(target.assignment, target.consumers, target.consumers, _trials(view, target, suspects))


def _trials(
    view: GroupView, target: Target, suspects: frozenset[Incarnation]
) -> Mapping[ConsumerId, frozenset[TopicPartition]]:
    if view.wanted is None:
        return {}
    step = next_hand_over(view, target, view.joined(suspects))
    return {step.spare: step.partitions} if step is not None else {}


def assignments_for(state: ControllerState, target: Target | None) -> Write:
    """Records that bring the group one step nearer to `target`."""
    suspects = state.suspects()
    goal = goal_of(state.view, target, suspects)
    if goal is None:
        return Write()
    changes = reconcile(state.view, goal.desired, goal.may_stay, suspects, strict=state.strict, trials=goal.trials)
    doubled = {member: MemberAssignment(member, retire=True) for member in _doubled(state.view)}
    assignments = [assignment for assignment in changes.assignments if assignment.member not in doubled]
    return replace(changes, assignments=(*assignments, *doubled.values()))


def is_settled(state: ControllerState) -> bool:
    """Whether the group has reached its goal, and nothing is left to write.

    A spare that is on its way holds nothing up: until it has joined, the load may have changed again.
    """
    suspects = state.suspects()
    goal = goal_of(state.view, state.target, suspects)
    if goal is None:
        return True
    # One that is silent and wanted nowhere cannot be told to end: it would keep the group waiting for ever
    counted = {i: m for i, m in state.view.members.items() if i not in suspects or m.member.consumer in goal.joined}
    on_the_way = frozenset(state.target.spares if state.target else ()) - state.view.joined(suspects)
    wanted = frozenset(goal.joined) - on_the_way
    has_come = converged(replace(state.view, members=counted), goal.desired, wanted, suspects)
    return has_come and not assignments_for(state, state.target)


def is_placed(state: ControllerState) -> bool:
    """Whether everybody who has joined reads what they shall; what is left waits for somebody to come."""
    suspects = state.suspects()
    goal = goal_of(state.view, state.target, suspects)
    current, joined = state.view.current(), state.view.joined(suspects)
    return goal is None or all(current.get(p) == c for p, c in goal.desired.items() if c in joined)


def held_replacement(state: ControllerState) -> ReplacementWait | None:
    """What the next step of a replacement waits for; None: nobody is to be replaced."""
    return replacement_wait(state.view, state.target, state.suspects()) if state.target else None


def upsets_now(state: ControllerState, now: float) -> frozenset[Disruption]:
    """Present disruptions; none while the group is paused or stopped on request."""
    if state.view.run_state is not RunState.RUNNING:
        return frozenset()
    health = GroupHealth(state.view, state.suspects(), state.starts(now), state.strict)
    if state.target is not None and state.target.idle is not None:
        waking = waking_reason(state, now)
        return health.upsets(None) | ({Disruption("waking", waking)} if waking else frozenset())
    measured = state.fresh(now)
    return health.upsets(measured.write_speeds().keys() if measured is not None else None)


def _doubled(view: GroupView) -> Iterator[Member]:
    """Older processes of a consumer that hold nothing.

    A process that never had an assignment does not learn of the newer one by itself; and if the fleet does not know it,
    no Stop reaches it.
    """
    newest = {member.member.incarnation for member in view.newest().values()}
    for incarnation, member in view.members.items():
        is_there = member.report is not None and not member.ended
        if incarnation not in newest and is_there and not member.retiring and not member.possibly_owned:
            yield member.member
