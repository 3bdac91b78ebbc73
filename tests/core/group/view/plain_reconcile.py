"""The next Assignments, every partition looked at anew: what `reconcile` must come to, said as plainly as it goes."""

from kgs_core.group.protocol import MemberAssignment, Tombstone
from kgs_core.group.view.events import Write
from kgs_core.group.view.reconcile import reconcile
from kgs_core.model import TopicPartition

_NOBODY = frozenset()


def both(*arguments, **keywords):
    """What `reconcile` says, which must be what the plain one says."""
    found = reconcile(*arguments, **keywords)
    assert found == plain_reconcile(*arguments, **keywords)
    return found


def plain_reconcile(view, desired, wanted, suspected, *, strict, trials=None):
    placing = _PlainPlacing(view, suspected, strict=strict)
    owned = {}
    given = set()
    for partition, consumer in desired.items():
        owner = placing.owner(partition, consumer)
        if owner is not None:
            owned.setdefault(owner, set()).add(partition)
            given.add(partition)
    shares = _by_consumer(desired)
    may_stay = {*wanted, *shares}
    is_read = placing.reads_all(desired)
    assignments = []
    for incarnation, known in view.members.items():
        gets = frozenset(owned.get(incarnation, ()))
        lacks = shares.get(known.member.consumer, set()) - gets if placing.may_own(known) else ()
        pending = frozenset(p for p in lacks if p in given or placing.is_held(p, besides=incarnation))
        if trials and placing.may_own(known):
            pending |= trials.get(known.member.consumer, frozenset()) - gets
        has_to_go = is_read and known.member.consumer not in may_stay and placing.is_empty_for_good(known)
        retire = known.retiring or has_to_go
        assignment = MemberAssignment(known.member, gets, placing.possible[incarnation] - gets, pending, retire)
        if placing.is_news(known, assignment):
            assignments.append(assignment)
    return Write(None, tuple(assignments), tuple(Tombstone(member) for member in sorted(view.unmarked)))


class _PlainPlacing:
    """Holders of partitions, and who may be given them."""

    def __init__(self, view, suspected, *, strict):
        self._members = view.members
        self._newest = view.newest()
        self._joined = view.joined(suspected)
        self._freed_by_silence = _NOBODY if strict else suspected
        self.possible = {incarnation: member.possibly_owned for incarnation, member in view.members.items()}
        self._holders = _by_partition(self.possible)
        self._assigned = _by_partition(
            {
                member.member.incarnation: member.assignment.message.owned
                for member in self._newest.values()
                if member.assignment is not None and not member.ended
            }
        )

    def owner(self, partition, consumer):
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

    def may_own(self, view):
        return self._is_newest(view) and view.report is not None and not view.ended and not view.retiring

    def is_held(self, partition, besides):
        return any(holder != besides for holder in self._holders.get(partition, []))

    def reads_all(self, desired):
        reports = (view.report for view in self._members.values() if not view.ended)
        owned = (report.owned for report in reports if report is not None)
        return frozenset[TopicPartition]().union(*owned).issuperset(desired)

    def is_empty_for_good(self, view):
        is_assigned = view.assignment is not None and not view.assignment.message.owned
        return self._is_newest(view) and is_assigned and not view.ended and not self.possible[view.member.incarnation]

    def is_news(self, view, assignment):
        if view.assignment is not None:
            return view.assignment.message != assignment
        return self.may_own(view) or assignment != MemberAssignment(view.member)

    def _is_newest(self, view):
        return self._newest[view.member.consumer].member.incarnation == view.member.incarnation

    def _is_free(self, partition, besides):
        return all(h == besides or h in self._freed_by_silence for h in self._holders.get(partition, []))


def _by_partition(sets):
    found = {}
    for holder, partitions in sets.items():
        for partition in partitions:
            found.setdefault(partition, []).append(holder)
    return found


def _by_consumer(desired):
    shares = {}
    for partition, consumer in desired.items():
        shares.setdefault(consumer, set()).add(partition)
    return shares
