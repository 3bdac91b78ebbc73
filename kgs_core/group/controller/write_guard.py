"""Guard of writes: finds what a Write would break before it is made; shares no code with its maker."""

from collections.abc import Iterator, Mapping

from kgs_core.group.invariants.assignments import check_single_owner
from kgs_core.group.protocol import Incarnation, MemberAssignment, Phase, Target
from kgs_core.group.view.events import Write
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.member_view import MemberView
from kgs_core.model import TopicPartition, grouped

_NOTHING: frozenset[TopicPartition] = frozenset()
_Holders = Mapping[TopicPartition, list[Incarnation]]


def check_write(view: GroupView, suspected: frozenset[Incarnation], write: Write, *, strict: bool) -> tuple[str, ...]:
    """Check S1, S4 and S7 of the Assignments, and that a Target covers every partition; not its capacity.

    Returns:
        Problems, a line each; empty: none. Problems that existed before this Write are left out.
    """
    may_hold = {incarnation: _may_hold(member) for incarnation, member in view.members.items()}
    counting = grouped(
        (partition, incarnation)
        for incarnation, held in may_hold.items()
        if strict or incarnation not in suspected
        for partition in held
    )
    problems = [*_uncovered(write.target)] if write.target is not None else []
    for assignment in write.assignments:
        member = view.members.get(assignment.member.incarnation, MemberView(assignment.member))
        problems += _check_start(view, member, assignment, counting)
        problems += _check_rest(member, assignment, may_hold.get(assignment.member.incarnation, _NOTHING))
    return (*problems, *_check_assignments(view, write))


def check_owners(view: GroupView, suspected: frozenset[Incarnation]) -> tuple[str, ...]:
    """Check S1 of the reports: problems, a line each. An Assignment limits what is owned until it is applied.

    A member that returns after a suspicion claims partitions of others until it has read that it must let go.
    """
    claims = {}
    for incarnation, member in view.members.items():
        if member.report is None or _is_over(member) or incarnation in suspected:
            continue
        owned = member.report.owned
        if member.assignment is not None and not _has_applied(member):
            owned &= member.assignment.message.owned
        claims[str(member.member)] = owned
    return check_single_owner(claims)


def _check_start(view: GroupView, member: MemberView, assignment: MemberAssignment, holders: _Holders) -> Iterator[str]:
    """S4: a partition enters an Assignment if no other member may hold it, or its holder is suspected."""
    last = member.assignment.message.owned if member.assignment else _NOTHING
    for partition in sorted(assignment.owned - last):
        for holder in holders.get(partition, ()):
            if holder != assignment.member.incarnation:
                other = view.members[holder].member
                yield f"S4 {partition}: enters the Assignment of {assignment.member} while {other} may hold it"


def _check_rest(member: MemberView, assignment: MemberAssignment, held: frozenset[TopicPartition]) -> Iterator[str]:
    who = assignment.member
    for partition in sorted(assignment.owned & assignment.revoking):
        yield f"S4 {partition}: {who} is to own it and to give it up at once"
    for partition in sorted(held - assignment.owned - assignment.revoking):
        yield f"S4 {partition}: {who} may still hold it, and its Assignment does not say so"
    if assignment.retire and (assignment.owned or held):
        yield f"S7 {who}: is told to end while it may hold {len(assignment.owned | held)} partitions"
    if member.assignment is not None and member.assignment.message.retire and not assignment.retire:
        yield f"S7 {who}: was told to end, which is for good"


def _check_assignments(view: GroupView, write: Write) -> tuple[str, ...]:
    """S1 of the Assignments after this Write."""
    living = [member for member in view.members.values() if not _is_over(member)]
    before = {str(member.member): member.assignment.message.owned for member in living if member.assignment}
    after = before | {str(assignment.member): assignment.owned for assignment in write.assignments}
    known = check_single_owner(before)
    return tuple(f"S1 by Assignments: {line}" for line in check_single_owner(after) if line not in known)


def _uncovered(target: Target) -> Iterator[str]:
    for partition in sorted(target.speeds.keys() ^ target.assignment.keys()):
        what = "has no consumer" if partition in target.speeds else "is not known, and has a consumer"
        yield f"S6 {partition}: {what}"
    for partition, consumer in sorted(target.assignment.items()):
        if consumer < 1:
            yield f"S6 {partition}: {consumer} is not a consumer's number"


def _is_over(member: MemberView) -> bool:
    return member.report is not None and member.report.phase is Phase.ENDED


def _has_applied(member: MemberView) -> bool:
    applied = member.report.applied if member.report else None
    return member.assignment is not None and applied is not None and applied >= member.assignment.offset


def _may_hold(member: MemberView) -> frozenset[TopicPartition]:
    """Partitions that an incarnation may hold, by rule 3."""
    if _is_over(member):
        return _NOTHING
    reported = member.report.owned if member.report else _NOTHING
    if member.assignment is None or _has_applied(member):
        return reported
    return reported | member.assignment.message.owned | member.assignment.message.revoking
