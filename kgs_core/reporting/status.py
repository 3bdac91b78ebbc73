"""The group for people: who reads what, the state of each consumer, and what a change waits for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kgs_core.config import Settings
from kgs_core.group.controller.capacity import capacity_seen
from kgs_core.group.controller.desired_state import goal_of
from kgs_core.group.controller.plan_request import open_request
from kgs_core.group.controller.state import ControllerState
from kgs_core.group.protocol import Change, DesiredState, DesiredVersion, Idle, Incarnation, RunState, Target
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.reconcile import converged, waiting
from kgs_core.group.view.rolling_replacement import ReplacementWait, is_outdated, replacement_wait
from kgs_core.model import Assignment, ConsumerId, TopicPartition, WriteSpeeds, known_sum, whole_sum
from kgs_core.planning.learnt_capacity import Capacity
from kgs_core.planning.rebalance_budget import MAX_HISTORY, moved_within_an_hour
from kgs_core.reporting.bad_shares import bad_shares
from kgs_core.reporting.consumer_rows import ConsumerRow, ExternalFacts, Rows

_SILENT_INTERVALS = 5
_SILENT_AT_LEAST_S = 10.0


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """Everything that `kgs status` shows.

    Attributes:
        controller_is_heard: whether measurements have been published recently, as a controller always does.
        target: the newest one; None before the first.
        current: who reads what, by the reports.
        is_converged: whether reports and consumers match the target and the desired state.
        waiting: partition that is not where it should be -> reason.
        lag: offsets that the lake lacks; None if it is unknown for one partition.
        known_lag: lag of partitions whose lag is known; None: of none. `lag_unknown_partitions` counts the others.
        capacity: of a consumer, as configured and as learnt.
        outdated: consumers of another version or configuration than wanted.
        bad_shares: topic with too many bad records -> share of these, 0 to 1.
        replacement: what replacing them waits for; None: it is complete.
        forced_only: changes that are not forced wait for `kgs plan --apply`.
        quiet_until: end of the time of day with forced moves only, as `20:00Z`; empty: none now.
        rscore_left: Rscore that unforced changes may still move in this hour; None: there is no bound.
        failures: missing consumer -> the error that ended it, by its last report.
    """

    group: str
    controller_is_heard: bool
    target: Target | None
    current: Assignment
    is_converged: bool
    waiting: Mapping[TopicPartition, str]
    consumers: tuple[ConsumerRow, ...]
    lag: int | None
    facts: ExternalFacts
    capacity: Capacity
    desired_state: DesiredState | None = None
    wanted: DesiredVersion | None = None
    outdated: tuple[ConsumerId, ...] = ()
    bad_shares: Mapping[str, float] = field(default_factory=dict)
    replacement: ReplacementWait | None = None
    failures: Mapping[ConsumerId, str] = field(default_factory=dict)
    forced_only: bool = False
    quiet_until: str = ""
    rscore_left: float | None = None
    known_lag: int | None = None
    lag_unknown_partitions: int = 0

    @property
    def request(self) -> DesiredState | None:
        """An open request to carry out what the packer wants; None: none."""
        return open_request(self.desired_state, self.target)

    @property
    def run_state(self) -> RunState:
        """What people want of the group as a whole."""
        return self.desired_state.state if self.desired_state is not None else RunState.RUNNING

    @property
    def idle(self) -> Idle | None:
        """The proof by which an idle group reads nothing; None: it is not idle."""
        return self.target.idle if self.target is not None and self.run_state is RunState.RUNNING else None

    @property
    def idle_partitions(self) -> frozenset[TopicPartition]:
        """Partitions that need no reader while the group is idle, without those whose records the lake lacks."""
        return frozenset(tp for tp in self.idle.ends if not self.facts.lags.get(tp)) if self.idle else frozenset()

    @property
    def readers(self) -> int:
        """Number of consumers that read something."""
        return len(set(self.current.values()))

    @property
    def stopped(self) -> dict[TopicPartition, str]:
        """Partition that is stopped at its present owner -> reason."""
        said = ((tp, why, row.consumer) for row in reversed(self.consumers) for tp, why in row.stopped.items())
        return {tp: why for tp, why, consumer in said if self.current.get(tp) == consumer}

    @property
    def partition_states(self) -> dict[TopicPartition, str]:
        """`owned`, `draining` or `stopped`, for each partition of a consumer that is not silent."""
        states: dict[TopicPartition, str] = {}
        for row in self.consumers:
            if not row.is_silent:
                lets_go = row.state in ("draining", "retiring")
                states |= dict.fromkeys(row.partitions, "draining" if lets_go else "owned")
        return states | dict.fromkeys(self.stopped.keys() & states.keys(), "stopped")

    @property
    def topics_consumed(self) -> int:
        """Number of topics of which at least one partition has an owner and is not stopped."""
        return len({tp.topic for tp in self.current.keys() - self.stopped.keys()})

    @property
    def least_consumers(self) -> int | None:
        """Fewest consumers that the load can need; None: a speed is unknown."""
        target, speeds = self.target, self.facts.speeds
        if target is None or not target.assignment.keys() <= speeds.keys():
            return None
        largest = max(target.capacity, *target.capacity_of.values(), 0.0)
        return math.ceil(math.fsum(speeds[tp] for tp in target.assignment) / largest)

    @property
    def hot_partitions(self) -> WriteSpeeds | None:
        """Partitions that are written faster than a consumer reads; None: no measurement."""
        if self.facts.measured_age_s is None:
            return None
        limit = self.largest_capacity
        return {tp: speed for tp, speed in sorted(self.facts.speeds.items()) if speed > limit}

    @property
    def largest_capacity(self) -> float:
        """`consumer_capacity` of the largest class, stored bytes/s."""
        packing = self.capacity.packing
        return packing.consumer_capacity * packing.classes_of({}).largest

    @property
    def changes(self) -> tuple[Change, ...]:
        """The newest changes, in their order."""
        return self.target.history[-MAX_HISTORY:] if self.target is not None else ()


def group_status(settings: Settings, view: GroupView, facts: ExternalFacts, now: float, time_ms: int) -> GroupStatus:
    """The group as of `now`, on the view's monotonic clock; `time_ms`: wall clock, ms since 1970."""
    target = view.target.message if view.target is not None else None
    suspects = view.suspects(now, settings.membership.suspect_after_s)
    goal = goal_of(view, target, suspects)
    age_s, current = facts.measured_age_s, view.current()
    packing, most = settings.packing, settings.packing.max_rscore_per_hour
    history = target.history if target is not None else ()
    living = {member.member.consumer for member in view.members.values() if not member.ended}
    lags = list((dict.fromkeys(current) | dict(facts.lags)).values())
    return GroupStatus(
        group=settings.group,
        controller_is_heard=age_s is not None and age_s <= silent_after_s(settings),
        target=target,
        current=current,
        is_converged=goal is not None and converged(view, goal.desired, goal.joined, suspects),
        waiting=_waiting(view, goal.desired if goal is not None else {}, suspects),
        consumers=tuple(Rows(view, facts, now, suspects).all()),
        lag=whole_sum(lags) if lags else None,
        known_lag=known_sum(lags),
        lag_unknown_partitions=lags.count(None),
        facts=facts,
        desired_state=view.desired_state,
        wanted=view.asked.message if view.asked is not None else None,
        outdated=tuple(sorted({m.member.consumer for m in view.members.values() if is_outdated(m, view.wanted)})),
        bad_shares=bad_shares(view, suspects),
        replacement=replacement_wait(view, target, suspects) if target is not None else None,
        failures={c: why for c, why in sorted(view.failures.items()) if c not in living},
        capacity=capacity_seen(view, packing, facts.load.bytes_per_offset if facts.load else {}, suspects),
        forced_only=packing.apply == "forced_only",
        quiet_until=packing.forced_only_until(time_ms),
        rscore_left=None if most is None else max(0.0, most - moved_within_an_hour(history, time_ms)),
    )


def observed_status(settings: Settings, state: ControllerState, now: float) -> GroupStatus:
    """The group as an observer knows it; a measurement that is too old to pack by counts as none.

    Args:
        state: the observer's; silence counts up to its last reading.
    """
    load = state.fresh(now)
    facts = ExternalFacts(None if load is None else load.as_of(now))
    return group_status(settings, state.view, facts, state.listening.at, state.time_ms(now))


def silent_after_s(settings: Settings) -> float:
    """Age of the last measurement from which on the controller counts as down."""
    return max(_SILENT_AT_LEAST_S, _SILENT_INTERVALS * settings.monitor.interval_s)


def _waiting(view: GroupView, desired: Assignment, suspects: frozenset[Incarnation]) -> dict[TopicPartition, str]:
    found = {one.partition: one.why for one in waiting(view, desired, suspects)}
    # What is read and shall not be: the group is paused, or the topic is none of ours any more
    left = sorted((tp, consumer) for tp, consumer in view.current().items() if tp not in desired)
    return found | {tp: f"consumer {consumer} is to let it go" for tp, consumer in left}
