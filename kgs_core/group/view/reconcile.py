"""The next Assignments: one pure function of what the topics say, and how far the group is from what is desired.

Level-triggered: called again after every record, it writes what is missing and nothing twice. Partition p enters the
`owned` set of one incarnation only when no other one possibly owns it; until then it is in the `revoking` set of who
may hold it and in the `pending` set of who waits for it.

What it costs goes by what is out of place. What its consumer's newest incarnation is to have and was assigned stays
there, whoever else holds it (`_Placing.owner`), so that is found by comparing whole sets. Only the other partitions
are looked at one by one.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kgs_core.group.protocol import Incarnation, Member, MemberAssignment, Tombstone
from kgs_core.group.view.events import Write
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.member_view import MemberView
from kgs_core.model import Assignment, ConsumerId, TopicPartition, grouped
from kgs_core.planning.shares import shares_of

_Holder = TypeVar("_Holder", Incarnation, Member)
_NOBODY: frozenset[Incarnation] = frozenset()
_NOTHING: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class WaitingPartition:
    """A partition that is not yet with its desired consumer, and why."""

    partition: TopicPartition
    consumer: ConsumerId
    why: str

    def __str__(self) -> str:
        """As it is written in logs."""
        return f"{self.partition} for consumer {self.consumer}: {self.why}"


def reconcile(
    view: GroupView,
    desired: Assignment,
    wanted: Collection[ConsumerId],
    suspected: frozenset[Incarnation],
    *,
    strict: bool,
    trials: Mapping[ConsumerId, frozenset[TopicPartition]] | None = None,
) -> Write:
    """The Assignments that bring the group one step nearer to `desired`; each only if it differs from the last one.

    A partition whose desired consumer has not joined stays where it is. While any has no reader, nobody is told to end,
    for whoever has joined may be needed. One that is not in `desired` leaves every `owned` and `pending` set; with
    an empty `desired` nobody reads. An incarnation that was told to end gets nothing, whether its consumer is wanted
    again or not: a new one must come.

    Args:
        wanted: consumers that shall run, spares among them; another one is told to end once it owns nothing.
        strict: only a confirmed death frees a partition, suspicion does not.
        trials: what consumers shall open and report whether they can, though it stays where it is.
    """
    shares = shares_of(desired)
    placing = _Placing(view, suspected, shares, strict=strict)
    owned: dict[Incarnation, set[TopicPartition]] = {}
    given = set()
    for partition in placing.moving:
        owner = placing.owner(partition, desired[partition])
        if owner is not None:
            owned.setdefault(owner, set()).add(partition)
            given.add(partition)
    may_stay = {*wanted, *shares}
    assignments = []
    for incarnation, known in view.members.items():
        consumer = known.member.consumer
        share = shares.get(consumer, _NOTHING)
        gets = placing.kept.get(incarnation, _NOTHING)
        if incarnation in owned:
            gets |= owned[incarnation]
        lacks = share - gets if placing.may_own(known) else ()
        pending = frozenset(p for p in lacks if p in given or placing.is_held(p, besides=incarnation))
        if trials and placing.may_own(known):
            pending |= trials.get(consumer, frozenset()) - gets
        may_go = consumer not in may_stay and placing.is_empty_for_good(known)
        retire = known.retiring or (may_go and placing.reads_all(desired))
        assignment = MemberAssignment(known.member, gets, placing.possible[incarnation] - gets, pending, retire)
        if placing.is_news(known, assignment):
            assignments.append(assignment)
    return Write(None, tuple(assignments), tuple(Tombstone(member) for member in sorted(view.unmarked)))


def waiting(
    view: GroupView, desired: Assignment, suspected: frozenset[Incarnation] = _NOBODY
) -> tuple[WaitingPartition, ...]:
    """Partitions that their desired consumer does not report yet, and why; sorted."""
    newest, joined = view.newest(), view.joined(suspected)
    late = _late(newest, desired)
    if not late:
        return ()
    holders = _by_partition({m.member: m.possibly_owned & late.keys() for m in view.members.values()})
    found = []
    for partition, consumer in sorted(late.items()):
        member = newest.get(consumer)
        others = [holder for holder in holders.get(partition, []) if member is None or holder != member.member]
        found.append(WaitingPartition(partition, consumer, _why(member, others, has_joined=consumer in joined)))
    return tuple(found)


def _late(newest: Mapping[ConsumerId, MemberView], desired: Assignment) -> dict[TopicPartition, ConsumerId]:
    """What the newest incarnation of its consumer does not report, or has ended with."""
    found: dict[TopicPartition, ConsumerId] = {}
    for consumer, share in shares_of(desired).items():
        member = newest.get(consumer)
        report = member.report if member is not None and not member.ended else None
        found |= dict.fromkeys(share - (report.owned if report is not None else _NOTHING), consumer)
    return found


def converged(
    view: GroupView,
    desired: Assignment,
    wanted: Collection[ConsumerId],
    suspected: frozenset[Incarnation] = _NOBODY,
) -> bool:
    """Whether current is target: nothing is left to wait for, though `revoking` sets may still have to be tidied up.

    Everybody wanted has joined and owns what it shall; nobody else that speaks holds anything; who is not wanted was
    told to end. What silent ones may hold does not count: they could keep the group waiting for ever.
    """
    shares = shares_of(desired)
    newest = view.newest()
    if not view.joined(suspected).issuperset({*wanted, *shares}):
        return False
    for incarnation, known in view.members.items():
        consumer = known.member.consumer
        is_newest = newest[consumer].member.incarnation == incarnation
        if is_newest and consumer not in wanted and consumer not in shares and not (known.retiring or known.ended):
            return False
        share = shares.get(consumer, _NOTHING) if is_newest else _NOTHING
        if incarnation not in suspected and known.possibly_owned != share:
            return False
    return not _late(newest, desired)


def _why(member: MemberView | None, holders: Collection[Member], *, has_joined: bool) -> str:
    if member is None or member.report is None or member.ended:
        return "it has not joined"
    if member.retiring:
        return f"{member.member} was told to end, and no other has joined"
    if not has_joined:
        return f"{member.member} is silent"
    if holders:
        return f"held by {', '.join(str(holder) for holder in sorted(holders))}"
    return f"{member.member} has not reported it yet"


class _Placing:
    """Holders of partitions, and who may be given them.

    Attributes:
        kept: newest incarnation -> what it was assigned and is to have.
        moving: all else that somebody is to have.
    """

    def __init__(
        self,
        view: GroupView,
        suspected: frozenset[Incarnation],
        shares: Mapping[ConsumerId, frozenset[TopicPartition]],
        *,
        strict: bool,
    ) -> None:
        self._members = view.members
        self._newest = view.newest()
        self._joined = view.joined(suspected)
        self._reads_all: bool | None = None
        self._freed_by_silence = _NOBODY if strict else suspected
        self.possible = {incarnation: member.possibly_owned for incarnation, member in view.members.items()}
        assigned = {
            member.member.incarnation: member.assignment.message.owned
            for member in self._newest.values()
            if member.assignment is not None and not member.ended
        }
        self.kept: dict[Incarnation, frozenset[TopicPartition]] = {}
        self.moving: set[TopicPartition] = set()
        for consumer, share in shares.items():
            newest = self._newest.get(consumer)
            has = assigned.get(newest.member.incarnation, _NOTHING) if newest is not None else _NOTHING
            if newest is not None and has:
                self.kept[newest.member.incarnation] = has if has <= share else has & share
            self.moving |= share - has
        self._holders = _by_partition({holder: held & self.moving for holder, held in self.possible.items()})
        self._assigned = _by_partition({holder: has & self.moving for holder, has in assigned.items()})

    def owner(self, partition: TopicPartition, consumer: ConsumerId) -> Incarnation | None:
        """Whose `owned` set `partition` is in, when `consumer` is to read it; None: it is on its way, or lost."""
        assigned = self._assigned.get(partition, [])
        newest = self._newest.get(consumer)
        incarnation = newest.member.incarnation if newest else None
        if incarnation in assigned:
            return incarnation
        if consumer in self._joined:
            return incarnation if incarnation and self._is_free(partition, incarnation) else None
        if assigned:
            return assigned[0]
        # On its way to a consumer that is not there any more: it goes back to who may still hold it
        for holder in self._holders.get(partition, []):
            view = self._members[holder]
            can_own = self.may_own(view) and view.member.consumer in self._joined
            if can_own and self._is_free(partition, holder):
                return holder
        return None

    def may_own(self, view: MemberView) -> bool:
        """Whether partitions can be given to it at all: an older incarnation, a retiring and an ended one own nothing.

        Silence does not count here: a silent consumer keeps what it has until another is to have it.
        """
        return self._is_newest(view) and view.report is not None and not view.ended and not view.retiring

    def is_held(self, partition: TopicPartition, besides: Incarnation) -> bool:
        """Whether another incarnation may hold it."""
        return any(holder != besides for holder in self._holders.get(partition, []))

    def reads_all(self, desired: Collection[TopicPartition]) -> bool:
        """Whether each of `desired` has a reader that has not ended, silent or not."""
        if self._reads_all is None:
            reports = (view.report for view in self._members.values() if not view.ended)
            owned = (report.owned for report in reports if report is not None)
            self._reads_all = _NOTHING.union(*owned).issuperset(desired)
        return self._reads_all

    def is_empty_for_good(self, view: MemberView) -> bool:
        """S7: it owns nothing, and no Assignment lets it start."""
        is_assigned = view.assignment is not None and not view.assignment.message.owned
        return self._is_newest(view) and is_assigned and not view.ended and not self.possible[view.member.incarnation]

    def is_news(self, view: MemberView, assignment: MemberAssignment) -> bool:
        """Whether `assignment` must be written.

        Even with nothing to own, the first Assignment of a new incarnation tells an older one of the same consumer to
        go. One that owns nothing and is not the newest, or has ended, needs none.
        """
        if view.assignment is not None:
            return view.assignment.message != assignment
        return self.may_own(view) or assignment != MemberAssignment(view.member)

    def _is_newest(self, view: MemberView) -> bool:
        return self._newest[view.member.consumer].member.incarnation == view.member.incarnation

    def _is_free(self, partition: TopicPartition, besides: Incarnation) -> bool:
        """Rule 3: no other incarnation possibly owns it."""
        return all(h == besides or h in self._freed_by_silence for h in self._holders.get(partition, []))


def _by_partition(sets: Mapping[_Holder, Collection[TopicPartition]]) -> dict[TopicPartition, list[_Holder]]:
    return grouped((partition, holder) for holder, partitions in sets.items() for partition in partitions)
