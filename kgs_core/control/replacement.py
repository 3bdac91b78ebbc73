"""Rolling replacement: consumers of another version or configuration give way, one after the other.

One at a time, and only while the group is as the Target has it: the partitions of one consumer go to a spare of the
right version, which reads them from then on under its own number, and the emptied one is retired. So each partition is
handed over once, and it is never more than one consumer's partitions that are on their way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kgs_core.control.overview import is_outdated
from kgs_core.control.spares import Numbers, choose_spares
from kgs_core.control.view import GroupView
from kgs_core.model import Assignment, ConsumerId
from kgs_core.protocol import Target


@dataclass(frozen=True, slots=True)
class Replacement:
    """The next step of a rolling replacement: another Target."""

    assignment: Assignment
    spares: tuple[ConsumerId, ...]
    reason: str


def outdated(view: GroupView, consumers: Sequence[ConsumerId]) -> tuple[ConsumerId, ...]:
    """Those of `consumers` that have another version or configuration than wanted, ascending."""
    newest = view.newest()
    return tuple(sorted(c for c in consumers if c in newest and is_outdated(newest[c], view.wanted)))


def plan_replacement(
    view: GroupView, target: Target, spare_consumers: int, numbers: Numbers, *, is_settled: bool
) -> Replacement | None:
    """The next step; None: nobody is to be replaced, or nobody can be now.

    To be asked for only when the group has converged to `target`.

    Args:
        view: what the topics say.
        target: that the group has converged to.
        spare_consumers: how many spares there shall be when it is over.
        numbers: to choose spares from.
        is_settled: the Target has stood for so long that a spare of the wrong version may be started anew although
            it was started for this very Target: else, while nothing but the wrong version can be started, spares
            would be started one after the other without end.
    """
    readers = outdated(view, tuple(set(target.assignment.values())))
    stale = outdated(view, target.spares)
    known = {member.incarnation for member in target.known}
    newest = view.newest()
    replaceable = [c for c in stale if is_settled or newest[c].member.incarnation in known]
    if replaceable:
        return _other_spare(target, replaceable[0], numbers)
    good = [c for c in target.spares if c in numbers.joined and c not in stale]
    if readers and good:
        return _hand_over(target, readers, good[0], spare_consumers, numbers)
    if readers and not target.spares:
        spares = choose_spares(target.consumers, 1, numbers)
        reason = f"replacement: consumer {readers[0]} is outdated, and there is no spare: one more for a while"
        return Replacement(target.assignment, spares, reason) if spares else None
    return None


def _other_spare(target: Target, spare: ConsumerId, numbers: Numbers) -> Replacement | None:
    kept = tuple(c for c in target.spares if c != spare)
    new = choose_spares((*target.consumers,), 1, numbers)
    reason = f"replacement: spare {spare} is outdated"
    return Replacement(target.assignment, tuple(sorted({*kept, *new})), reason) if new else None


def _hand_over(
    target: Target, readers: Sequence[ConsumerId], spare: ConsumerId, spare_consumers: int, numbers: Numbers
) -> Replacement:
    leaver = readers[0]
    assignment = {p: spare if c == leaver else c for p, c in target.assignment.items()}
    count = max(spare_consumers, 1 if len(readers) > 1 else 0)
    # The number of who leaves is not free before its process has ended
    used = {*assignment.values(), leaver}
    reason = f"replacement: consumer {leaver} is outdated, spare {spare} takes its partitions"
    return Replacement(assignment, choose_spares(used, count, numbers), reason)
