"""Health of a group: who is lost, who came back, and what makes a plan a thing of the past."""

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from kgs_core.group.protocol import Incarnation, Target
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.member_view import MemberView
from kgs_core.group.view.restart_policy import Starts
from kgs_core.model import Assignment, ConsumerId, TopicPartition
from kgs_core.planning.shares import shares_of
from kgs_core.planning.triggers import Reason, Watched


class Disruption(NamedTuple):
    """One thing that happened to the group; the same thing is equal however often it is seen."""

    what: str
    whom: str

    def __str__(self) -> str:
        """`consumer lost: 2`."""
        return f"{self.what}: {self.whom}"


@dataclass(frozen=True, slots=True)
class GroupHealth:
    """Health of the group as far as topics, clock and fleet tell: who is there.

    Attributes:
        strict: only a confirmed death frees a partition, so a suspect is not lost.
    """

    view: GroupView
    suspected: frozenset[Incarnation]
    starts: Starts
    strict: bool

    def watched(self, since_packing_s: float) -> Watched:
        """The group as the Sentinel sees it."""
        target = self.view.target.message if self.view.target else None
        current, stands = self._current(), target.assignment if target else {}
        returned = self._returned(target)
        lacking = {c for p, c in stands.items() if current.get(p) != c} if returned else set()
        return Watched(
            target=stands,
            current=current,
            joined=self.view.joined(self.suspected),
            lost=self.lost(),
            restarted=returned & lacking,
            failing=self.starts.quarantined,
            since_packing_s=since_packing_s,
            unusable=frozenset(c for c, member in self.view.newest().items() if self._is_unusable(member)),
            standing=frozenset(target.spares if target else ()),
            classes=self.view.classes(),
            zones=self.view.zones(),
        )

    def have_readers(self, stands: Assignment) -> bool:
        """Whether of `stands` each partition is read by somebody, or is for a consumer that is there to read it."""
        joined = self.view.joined(self.suspected) - self.starts.quarantined - self.lost()
        unread = {p for consumer, share in shares_of(stands).items() if consumer not in joined for p in share}
        for member in self._heard().values() if unread else ():
            if member.report is not None and not member.ended:
                unread -= member.report.owned
        return not unread

    def lost(self) -> frozenset[ConsumerId]:
        """Consumers that have had an incarnation, have none that is of use, and that nobody is starting."""
        target = self.view.target.message if self.view.target else None
        listed = target.known if target else ()
        dead = {m.consumer for m in (*listed, *self.view.unmarked) if m.incarnation in self.view.dead}
        newest = self.view.newest()
        gone = {consumer for consumer, member in newest.items() if self._is_gone(member)}
        return frozenset(gone | (dead - newest.keys())) - self.starts.starting.keys()

    def upsets(self, known_partitions: Set[TopicPartition] | None) -> frozenset[Disruption]:
        """Everything that makes a plan for the Target a thing of the past."""
        target = self.view.target.message if self.view.target else None
        if target is None:
            return frozenset()
        readers = set(target.assignment.values())
        newest = self.view.newest()
        found = {Disruption(Reason.LOST, str(c)) for c in self.lost() & readers}
        found |= {Disruption(Reason.FAILING, str(c)) for c in self.starts.quarantined & readers}
        found |= {Disruption("start failed", f"{c} ({n})") for c, n in self.starts.failures.items() if c in readers}
        found |= {Disruption(Reason.RESTARTED, str(newest[c].member)) for c in self._returned(target) & readers}
        if known_partitions is not None:
            found |= {Disruption(Reason.CHANGED, str(p)) for p in known_partitions ^ target.assignment.keys()}
        return frozenset(found)

    def _current(self) -> Assignment:
        """Who reads what; a suspect does not count where suspicion frees its partitions."""
        return self.view.current() if self.strict else replace(self.view, members=self._heard()).current()

    def _heard(self) -> Mapping[Incarnation, MemberView]:
        if self.strict:
            return self.view.members
        return {i: member for i, member in self.view.members.items() if i not in self.suspected}

    def _is_gone(self, member: MemberView) -> bool:
        is_silent = member.member.incarnation in self.suspected and not self.strict
        return member.ended or member.retiring or is_silent

    def _is_unusable(self, member: MemberView) -> bool:
        consumer = member.member.consumer
        if consumer in self.starts.starting or not self._is_gone(member):
            return False
        return not member.ended or consumer in self.starts.running

    def _returned(self, target: Target | None) -> frozenset[ConsumerId]:
        """Those that the Target knew under another incarnation: a first start is no return."""
        listed = target.known if target else ()
        incarnations, consumers = {m.incarnation for m in listed}, {m.consumer for m in listed}
        newest, joined = self.view.newest(), self.view.joined(self.suspected)
        return frozenset(c for c in consumers & joined if newest[c].member.incarnation not in incarnations)


def described(upsets: Collection[Disruption]) -> str:
    """For people: `consumer lost: 2; start failed: 3 (1)`."""
    return "; ".join(str(upset) for upset in sorted(upsets))
