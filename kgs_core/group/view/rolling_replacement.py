"""Rolling replacement: consumers of another version or configuration give way, one after the other.

One at a time, and only while the group is as the Target has it: the partitions of one consumer go to a spare of the
right version, which reads them from then on under its own number, and the emptied one is retired. So each partition is
handed over once, and it is never more than one consumer's partitions that are on their way.

A spare takes over only what it can open: its Assignment says what may come, it opens that while the old consumer reads
on, and reports what is ready and what it cannot open. Until everything is ready no Target is written, so a version or
configuration that cannot read the group's topics takes nothing from anybody.

A request speaks of the consumers that live when it is made. Once nobody is left who differs, be it that all were
replaced or that all have ended, the next Target says that it is fulfilled, for good: whoever is started later has what
the controller starts consumers with, and to replace him would bring the same again. For the same reason a spare that
was started after the request and differs is kept until people ask once more.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kgs_core.group.protocol import DesiredVersion, Incarnation, RunState, Target
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.member_view import MemberView
from kgs_core.group.view.plain_text import printable, ranges
from kgs_core.group.view.reconcile import converged, waiting
from kgs_core.model import Assignment, ConsumerId, TopicPartition, grouped
from kgs_core.planning.group import Group

_REASONS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Replacement:
    """The next step of a rolling replacement, or what else asks for another Target that is packed as the last one.

    Attributes:
        applied_ms: the request to carry out what the packer wants that it answers; None: it answers none.
    """

    assignment: Assignment
    spares: tuple[ConsumerId, ...]
    reason: str
    applied_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HandOver:
    """Hand-over to a spare of the right version: what it is to take over next, and from whom."""

    leaver: ConsumerId
    spare: ConsumerId
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class ReplacementWait:
    """Wait of a replacement before its next step.

    Attributes:
        refused: what the spare cannot open -> why: nothing goes on before somebody mends that.
    """

    what: str
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """For people."""
        if not self.refused:
            return f"the replacement waits for {self.what}"
        by_reason = grouped((printable(reason), tp) for tp, reason in self.refused.items())
        reasons = [f"{ranges(tps)}: {reason}" for reason, tps in sorted(by_reason.items(), key=lambda item: item[1])]
        more = [f"{len(reasons) - _REASONS_SHOWN} more reasons"] if len(reasons) > _REASONS_SHOWN else []
        return f"the replacement has stopped: it waits for {self.what}, which it cannot: " + "; ".join(
            [*reasons[:_REASONS_SHOWN], *more]
        )


def is_outdated(member: MemberView, wanted: DesiredVersion | None) -> bool:
    """Whether it lives, and has another version or configuration than people want."""
    report = member.report
    if wanted is None or report is None or member.ended:
        return False
    return (report.version, report.config_hash) != (wanted.version, wanted.config_hash)


def outdated(view: GroupView, consumers: Sequence[ConsumerId]) -> tuple[ConsumerId, ...]:
    """Those of `consumers` that have another version or configuration than wanted, ascending."""
    newest = view.newest()
    return tuple(sorted(c for c in consumers if c in newest and is_outdated(newest[c], view.wanted)))


def next_hand_over(view: GroupView, target: Target, joined: Collection[ConsumerId]) -> HandOver | None:
    """Which spare takes over from whom next; None: nobody who reads is outdated, or there is no spare for it."""
    readers = outdated(view, tuple(set(target.assignment.values())))
    stale = outdated(view, target.spares)
    good = [c for c in target.spares if c in joined and c not in stale]
    if not readers or not good:
        return None
    classes, capacities = target.class_of, target.capacity_of
    pairs = [(c, s) for c in readers for s in good if capacities.get(s, 0.0) >= capacities.get(c, 0.0)]
    if not pairs:
        return None
    leaver, spare = next((one for one in pairs if classes.get(one[0]) == classes.get(one[1])), pairs[0])
    return HandOver(leaver, spare, frozenset(p for p, c in target.assignment.items() if c == leaver))


def is_trying(view: GroupView, target: Target, joined: Collection[ConsumerId]) -> bool:
    """Whether a spare opens what it is to take over: until it has, nothing is given to its kind without need."""
    return view.wanted is not None and next_hand_over(view, target, joined) is not None


def fulfilled_ms(view: GroupView, suspects: Collection[Incarnation]) -> int | None:
    """What the next Target says is fulfilled, by the broker's clock; None: no request ever was."""
    members = (member for incarnation, member in view.members.items() if incarnation not in suspects)
    if view.asked is not None and not any(is_outdated(member, view.wanted) for member in members):
        return view.asked.timestamp_ms
    return view.target.message.fulfilled_ms if view.target is not None else None


def plan_replacement(view: GroupView, target: Target, spare_consumers: int, group: Group) -> Replacement | None:
    """The next step; None: nobody is to be replaced, or nobody can be now.

    To be asked for only when the group has converged to `target`.
    """
    readers = outdated(view, tuple(set(target.assignment.values())))
    replaceable = [c for c in outdated(view, target.spares) if _was_there_when_asked(view, c)]
    if replaceable:
        return _other_spare(target, replaceable[0], group, "outdated")
    hand_over = next_hand_over(view, target, group.joined)
    if hand_over is not None:
        return _hand_over(target, readers, hand_over, spare_consumers, group) if _is_ready(view, hand_over) else None
    stale = outdated(view, target.spares)
    small = [c for c in target.spares if c in group.joined and c not in stale]
    if readers and small:
        return _other_spare(target, small[0], group, f"of a smaller class than consumer {readers[0]}")
    if readers and not target.spares:
        spares = group.choose_spares(target.consumers, 1)
        reason = f"replacement: consumer {readers[0]} is outdated, and there is no spare: one more for a while"
        return Replacement(target.assignment, spares, reason) if spares else None
    return None


def replacement_wait(view: GroupView, target: Target, suspects: frozenset[Incarnation]) -> ReplacementWait | None:
    """What the next step waits for; None: nobody is to be replaced."""
    old = outdated(view, target.consumers)
    if not old:
        return None
    if view.run_state is not RunState.RUNNING:
        return ReplacementWait(f"`kgs resume`: the group is to be {view.run_state}")
    if not converged(view, target.assignment, target.consumers, suspects):
        return ReplacementWait(_change_under_way(view, target, suspects))
    if stale := outdated(view, target.spares):
        return ReplacementWait(_other_start(view, stale[0]))
    hand_over = next_hand_over(view, target, view.joined(suspects))
    if hand_over is None:
        return ReplacementWait("a spare to be started; a free number for it where they are used up")
    return _opening(view, hand_over)


def _was_there_when_asked(view: GroupView, spare: ConsumerId) -> bool:
    """Whether it reported before people asked; one that came later shows what starts lead to now."""
    heard_ms = view.newest()[spare].first_heard_ms
    return view.asked is not None and heard_ms is not None and heard_ms <= view.asked.timestamp_ms


def _is_ready(view: GroupView, hand_over: HandOver) -> bool:
    """Whether the spare has opened all that it is to take over; one that cannot say so is taken at its word."""
    report = view.newest()[hand_over.spare].report
    return report is not None and (report.ready is None or hand_over.partitions <= report.ready)


def _opening(view: GroupView, hand_over: HandOver) -> ReplacementWait:
    report = view.newest()[hand_over.spare].report
    ready = report.ready if report is not None and report.ready is not None else frozenset()
    reasons = report.unready if report is not None else {}
    refused = {tp: why for tp, why in sorted(reasons.items()) if tp in hand_over.partitions}
    what = ranges(refused or hand_over.partitions - ready or hand_over.partitions)
    return ReplacementWait(f"spare {hand_over.spare} to open {what} before consumer {hand_over.leaver} ends", refused)


def _other_start(view: GroupView, spare: ConsumerId) -> str:
    report = view.newest()[spare].report
    has = f"version {printable(report.version)}, configuration {printable(report.config_hash[:8])}" if report else "?"
    return (
        f"a spare of the wanted version and configuration: spare {spare} has {has}, and the next one would have the "
        "same: see with which ones the controller starts consumers, then `kgs replace` again"
    )


def _change_under_way(view: GroupView, target: Target, suspects: frozenset[Incarnation]) -> str:
    missing = sorted(set(target.consumers) - view.joined(suspects))
    if missing:
        return f"consumers to join: {', '.join(map(str, missing))}"
    late = waiting(view, target.assignment, suspects)
    if late:
        return f"the change under way: {ranges([one.partition for one in late])} pending"
    return "the change under way: consumers are to end"


def _other_spare(target: Target, spare: ConsumerId, group: Group, why: str) -> Replacement | None:
    kept = tuple(c for c in target.spares if c != spare)
    new = group.choose_spares(target.consumers, 1)
    reason = f"replacement: spare {spare} is {why}"
    return Replacement(target.assignment, tuple(sorted({*kept, *new})), reason) if new else None


def _hand_over(
    target: Target, readers: Sequence[ConsumerId], step: HandOver, spare_consumers: int, group: Group
) -> Replacement:
    assignment = {p: step.spare if c == step.leaver else c for p, c in target.assignment.items()}
    count = max(spare_consumers, 1 if len(readers) > 1 else 0)
    # The number of who leaves is not free before its process has ended
    used = {*assignment.values(), step.leaver}
    reason = f"replacement: consumer {step.leaver} is outdated, spare {step.spare} takes its partitions"
    return Replacement(assignment, group.choose_spares(used, count), reason)
