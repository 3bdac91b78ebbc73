"""The group as people are shown it: who reads what, how it is with each consumer, and what a change waits for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kgs_core.config.packing import PackingSettings
from kgs_core.controller.capacity import capacity_seen
from kgs_core.controller.desired_state import goal_of
from kgs_core.controller.group_view import GroupView
from kgs_core.controller.member_view import MemberView
from kgs_core.controller.plan_request import open_request
from kgs_core.controller.reconcile import converged, waiting
from kgs_core.controller.rolling_replacement import ReplacementWait, is_outdated, replacement_wait
from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds
from kgs_core.planning.learnt_capacity import Capacity
from kgs_core.planning.rebalance_budget import MAX_HISTORY
from kgs_core.protocol import (
    Change,
    DesiredState,
    DesiredVersion,
    Incarnation,
    Phase,
    Process,
    RunState,
    Target,
    WorkDone,
)
from kgs_core.reporting.bad_shares import bad_shares
from kgs_core.reporting.plan_json import rounded
from kgs_core.reporting.sums import known_sum, whole_sum


@dataclass(frozen=True, slots=True)
class ExternalFacts:
    """Facts that the group's own topics do not tell.

    Attributes:
        speeds: write speeds as measured last, bytes/s; without those that are not known.
        measured_age_s: how old that measurement is; None: there is none.
        lags: offsets that the lake has not yet, by partition; None where that is not known.
        problems: what could not be learned, a line each.
        bytes_per_offset: topic -> stored bytes of one offset, by that measurement.
    """

    speeds: WriteSpeeds = field(default_factory=dict)
    measured_age_s: float | None = None
    lags: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    bytes_per_offset: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConsumerRow:
    """One consumer, or one of its incarnations where there are several.

    Attributes:
        incarnation: None: nobody has joined under this number.
        partitions: what it owns, by its last report, ascending.
        load: sum of the write speeds of these, stored bytes/s; None where one is not known.
        bytes_per_s: what it has consumed of late, uncompressed.
        lag: offsets of these that the lake has not yet; None where one is not known.
        known_lag: of the others (None: of none), without `lag_unknown_partitions`.
        batch_age_s: age of the batch in hand at its last sign of life; 0.0 without one; None before the first.
        stopped: which of these stand still, and why.
        state: for people.
        needs_attention: somebody should know of it.
        process: that it is, as it says itself; None before its first report.
        work: done since its start; None: it does not say.
    """

    consumer: ConsumerId
    incarnation: Incarnation | None
    state: str
    partitions: tuple[TopicPartition, ...] = ()
    load: BytesPerSecond | None = None
    bytes_per_s: BytesPerSecond | None = None
    lag: int | None = None
    report_age_s: float | None = None
    stopped: Mapping[TopicPartition, str] = field(default_factory=dict)
    last_drain_s: float | None = None
    max_drain_s: float | None = None
    version: str = ""
    config_hash: str = ""
    needs_attention: bool = False
    process: Process | None = None
    batch_age_s: float | None = None
    work: WorkDone | None = None
    known_lag: int | None = None
    lag_unknown_partitions: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; null where something is not known.

        Returns:
            {"id", "incarnation" (null: nobody has joined), "state", "partitions": ["topic:0"], "load" (stored bytes/s),
            "bytes_per_s" (consumed), "lag", "known_lag", "lag_unknown_partitions", "report_age_s",
            "stopped": {"topic:0": reason}, "last_drain_s", "max_drain_s", "version", "config_hash"}
        """
        return {
            "id": self.consumer,
            "incarnation": self.incarnation,
            "state": self.state,
            "partitions": [str(tp) for tp in self.partitions],
            "load": rounded(self.load),
            "bytes_per_s": rounded(self.bytes_per_s),
            "lag": self.lag,
            "known_lag": self.known_lag,
            "lag_unknown_partitions": self.lag_unknown_partitions,
            "report_age_s": rounded(self.report_age_s),
            "stopped": {str(tp): reason for tp, reason in sorted(self.stopped.items())},
            "last_drain_s": rounded(self.last_drain_s),
            "max_drain_s": rounded(self.max_drain_s),
            "version": self.version,
            "config_hash": self.config_hash,
        }


CONSUMER_KEYS = tuple(ConsumerRow(ConsumerId(1), None, "").to_dict())
"""Keys of every consumer's values."""


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """Everything that `kgs status` shows.

    Attributes:
        controller_is_heard: whether measurements have been published of late, which a controller does all the time.
        target: the newest one; None before the first.
        current: who reads what, by the reports.
        is_converged: whether all is as it shall be: by the target, and by what people want.
        waiting: partitions that are not where they shall be -> why.
        lag: offsets that the lake has not yet; None where one partition's is not known.
        known_lag: of the others (None: of none), without `lag_unknown_partitions`.
        facts: what it was made with.
        outdated: consumers of another version or configuration than wanted.
        bad_shares: topics of which too many records are bad -> share of these, 0 to 1.
        replacement: what replacing them waits for; None: nothing of it is left to do.
        forced_only: changes that are not forced wait for `kgs plan --apply`.
        quiet_until: end of the window in which only what must move does, as `20:00Z`; empty: there is none now.
        rscore_left: what may be moved in this hour without being forced; None: there is no bound.
        failures: consumers that are not there -> the error that ended them, in their last words.
        capacity: of a consumer, as configured and as learnt; None: it was not asked for.
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
    desired_state: DesiredState | None = None
    wanted: DesiredVersion | None = None
    outdated: tuple[ConsumerId, ...] = ()
    bad_shares: Mapping[str, float] = field(default_factory=dict)
    replacement: ReplacementWait | None = None
    failures: Mapping[ConsumerId, str] = field(default_factory=dict)
    capacity: Capacity | None = None
    forced_only: bool = False
    quiet_until: str = ""
    rscore_left: float | None = None
    known_lag: int | None = None
    lag_unknown_partitions: int = 0

    @property
    def request(self) -> DesiredState | None:
        """An open request to carry out what the packer wants; None: there is none."""
        return open_request(self.desired_state, self.target)

    @property
    def topics_consumed(self) -> int:
        """Number of topics of which at least one partition has an owner and is not stopped."""
        still = {tp for line in self.consumers for tp in line.stopped}
        return len({tp.topic for tp in self.current.keys() - still})

    @property
    def changes(self) -> tuple[Change, ...]:
        """The last ones, from the earliest to the latest."""
        return self.target.history[-MAX_HISTORY:] if self.target is not None else ()


def group_status(  # noqa: PLR0913
    group: str,
    view: GroupView,
    facts: ExternalFacts,
    now: float,
    suspect_after_s: float,
    silence_s: float,
    *,
    packing: PackingSettings | None = None,
) -> GroupStatus:
    """The group as of `now`.

    Args:
        group: its name.
        view: what its topics say.
        facts: what they do not say.
        now: monotonic seconds, on the clock that the view was made with.
        suspect_after_s: silence that makes a consumer a suspect.
        silence_s: age of the last measurement from which on the controller counts as down.
        packing: as configured; None: nothing is said of the capacity.
    """
    target = view.target.message if view.target is not None else None
    suspects = view.suspects(now, suspect_after_s)
    goal = goal_of(view, target, suspects)
    age_s, current = facts.measured_age_s, view.current()
    living = {member.member.consumer for member in view.members.values() if not member.ended}
    lags = list((dict.fromkeys(current) | dict(facts.lags)).values())
    return GroupStatus(
        group=group,
        controller_is_heard=age_s is not None and age_s <= silence_s,
        target=target,
        current=current,
        is_converged=goal is not None and converged(view, goal.desired, goal.joined, suspects),
        waiting=_waiting(view, goal.desired if goal is not None else {}, suspects),
        consumers=tuple(_Lines(view, target, facts, now, suspects).all()),
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
        capacity=capacity_seen(view, packing, facts.bytes_per_offset, suspects) if packing else None,
    )


def _waiting(view: GroupView, desired: Assignment, suspects: frozenset[Incarnation]) -> dict[TopicPartition, str]:
    found = {one.partition: one.why for one in waiting(view, desired, suspects)}
    # What is read and shall not be: the group is paused, or the topic is none of ours any more
    left = sorted((tp, consumer) for tp, consumer in view.current().items() if tp not in desired)
    return found | {tp: f"consumer {consumer} is to let it go" for tp, consumer in left}


class _Lines:
    """Makes a line of every member, and of every consumer that should be one."""

    def __init__(
        self,
        view: GroupView,
        target: Target | None,
        facts: ExternalFacts,
        now: float,
        suspects: frozenset[Incarnation],
    ) -> None:
        self._view = view
        self._target = target
        self._facts = facts
        self._now = now
        self._suspects = suspects

    def all(self) -> list[ConsumerRow]:
        """By number, newer incarnations first; those that have ended are left out."""
        living = sorted(
            (member for member in self._view.members.values() if not member.ended),
            key=lambda member: (member.member.consumer, -member.joined),
        )
        lines = [self._line(member) for member in living]
        there = {line.consumer for line in lines}
        lines += [self._absent(consumer) for consumer in self._wanted() if consumer not in there]
        return sorted(lines, key=lambda line: line.consumer)

    def _wanted(self) -> tuple[ConsumerId, ...]:
        return self._target.consumers if self._target is not None else ()

    def _absent(self, consumer: ConsumerId) -> ConsumerRow:
        stopped = self._view.run_state is RunState.STOPPED
        return ConsumerRow(consumer, None, "ended" if stopped else "not there", needs_attention=not stopped)

    def _line(self, member: MemberView) -> ConsumerRow:
        (consumer, incarnation), report, state = member.member, member.report, self._state(member)
        age_s = None if member.last_seen_at is None else max(0.0, self._now - member.last_seen_at)
        if report is None:
            return ConsumerRow(consumer, incarnation, state, report_age_s=age_s, needs_attention=True)
        seen = self._facts
        lags = [seen.lags.get(tp) for tp in report.owned]
        return ConsumerRow(
            consumer=consumer,
            incarnation=incarnation,
            state=state,
            partitions=tuple(sorted(report.owned)),
            load=whole_sum(seen.speeds.get(tp) for tp in report.owned),
            bytes_per_s=report.bytes_per_s,
            lag=whole_sum(lags),
            known_lag=known_sum(lags),
            lag_unknown_partitions=lags.count(None),
            report_age_s=age_s,
            batch_age_s=report.batch_age_s or 0.0,
            stopped=report.stopped,
            last_drain_s=report.last_drain_s,
            max_drain_s=report.max_drain_s,
            work=report.work,
            version=report.version,
            config_hash=report.config_hash,
            needs_attention=incarnation in self._suspects or bool(report.stopped),
            process=report.process,
        )

    def _state(self, member: MemberView) -> str:
        """What it is doing, the most important thing first."""
        (consumer, incarnation), report = member.member, member.report
        if incarnation in self._suspects:
            return "silent"
        if report is None:
            return "has not reported"
        if self._view.newest()[consumer].member.incarnation != incarnation:
            return "replaced by a newer process"
        if member.retiring or report.phase is Phase.DRAINING:
            return "retiring" if member.retiring else "draining"
        if report.phase is Phase.READING and not report.owned:
            is_spare = self._target is not None and consumer in self._target.spares
            return "spare" if is_spare else "reads nothing"
        return str(report.phase)
