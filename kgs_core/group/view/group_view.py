"""View of the group: what its topics hold, as one immutable value.

Each topic's records come in order; between topics there is none. So nothing here depends on how they interleave: every
topic's newest word is kept, and what follows from several topics (who is newest, who is a member) is worked out anew.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, TypeVar

from kgs_core.group.protocol import (
    DesiredState,
    DesiredVersion,
    Heartbeat,
    Incarnation,
    Member,
    MemberAssignment,
    Message,
    Received,
    Report,
    RunState,
    Starting,
    Target,
    Tombstone,
)
from kgs_core.group.view.member_view import MemberView
from kgs_core.model import Assignment, ConsumerId, TopicPartition
from kgs_core.planning.kept import kept

_M = TypeVar("_M", bound=Message)


@dataclass(frozen=True)
class GroupView:
    """Content of the group's topics.

    Newer is the incarnation that joined later: `Target.known` lists them in that order, and goes on doing so when their
    first reports have expired. One that is not listed joined after the Target was written, so it is newer than all that
    are; among such ones the first report decides, and one that has an Assignment but no report any more comes before
    them. This needs tombstones to be kept for longer than reports: else the report of a dead incarnation, which no
    Target lists, would make it the newest.

    An incarnation that `Target.known` lists, and of which there is neither Assignment nor report, is no member. It
    owns nothing until it is assigned something; Assignments stay in their topic until a tombstone says that the death
    is confirmed; and whoever reads the topics has fenced every other writer. So it either had none or is dead. To keep
    it could do harm: nobody knows its process, so its death could never be confirmed, and as the newest of its consumer
    it would shut out one that lives. Should it report after all, it is a member again, with its old rank.

    Attributes:
        members: incarnation -> what is known of it, from the earliest to the latest that joined; none confirmed dead.
        dead: confirmed dead. They never come back, whatever late records say.
        unmarked: the dead of whom no tombstone was read.
        failures: consumer -> the last words of who reported last under its number, where an error ended it.
        since: when the first record was taken, monotonic seconds: silence of one never heard counts from there.
        desired: the newest state that people want; asked: the newest version and configuration likewise.
    """

    target: Received[Target] | None = None
    members: Mapping[Incarnation, MemberView] = field(default_factory=dict)
    dead: frozenset[Incarnation] = frozenset()
    desired: Received[DesiredState] | None = None
    asked: Received[DesiredVersion] | None = None
    unmarked: frozenset[Member] = frozenset()
    since: float | None = None
    failures: Mapping[ConsumerId, str] = field(default_factory=dict)

    def take(self, received: Received[Message], now: float) -> "GroupView":
        """With one more record, which has come just now; a late or doubled one changes nothing."""
        return self.take_all((received,), now)

    def take_all(self, received: Sequence[Received[Message]], now: float) -> "GroupView":
        """With more records, in the order of their partitions.

        Of reports that are read together, the newest counts as come now, and the others as come before it by as much
        as the broker's clock says. So all that is read at start must be given at once: then a report an hour old is no
        sign of life. That clock may go back, when another broker leads: what stands behind a record came after it.
        """
        reports = sorted((r.offset, r.timestamp_ms) for r in received if isinstance(r.message, Report | Heartbeat))
        reached_ms = dict(
            zip((offset for offset, _ in reports), accumulate((ms for _, ms in reports), max), strict=True)
        )
        newest_ms = max(reached_ms.values(), default=0)
        draft = _Draft(self)
        for one in received:
            draft.take(one, now - (newest_ms - reached_ms.get(one.offset, newest_ms)) / 1000)
        return draft.finished(now if self.since is None and received else self.since)

    def bury(self, dead: Collection[Incarnation]) -> "GroupView":
        """Without these, whose death is confirmed."""
        draft = _Draft(self)
        for incarnation in dead:
            draft.bury(incarnation)
        return draft.finished(self.since)

    @property
    def wanted(self) -> DesiredVersion | None:
        """Version and configuration that others are replaced for; None: nobody has asked, or it is fulfilled."""
        fulfilled_ms = self.target.message.fulfilled_ms if self.target is not None else None
        return self.asked.message if self.asked is not None and self.asked.timestamp_ms != fulfilled_ms else None

    @property
    def known(self) -> tuple[Member, ...]:
        """What the next Target lists as known."""
        return tuple(view.member for view in self.members.values())

    def newest(self) -> Mapping[ConsumerId, MemberView]:
        """Consumer -> its newest incarnation.

        One that has ended counts only where its consumer has no other: it never owns anything again, so it must not
        stand in the way of one that lives.
        """
        return self._newest

    def classes(self) -> dict[ConsumerId, str]:
        """Class of each consumer that has one: what its process says, else what the Target says."""
        named = self.target.message.class_of if self.target is not None else {}
        said = {c: m.report.consumer_class for c, m in self.newest().items() if m.report is not None and not m.ended}
        return {**named, **{c: name for c, name in said.items() if name or c in named}}

    @cached_property
    def _newest(self) -> Mapping[ConsumerId, MemberView]:
        ranked = sorted(self.members.values(), key=lambda view: (not view.ended, view.joined))
        return {view.member.consumer: view for view in ranked}

    def suspects(self, now: float, suspect_after_s: float) -> frozenset[Incarnation]:
        """Who has been silent for longer than `suspect_after_s`."""
        since = now if self.since is None else self.since
        return frozenset(
            incarnation
            for incarnation, view in self.members.items()
            if now - (since if view.last_seen_at is None else view.last_seen_at) > suspect_after_s
        )

    @property
    def desired_state(self) -> DesiredState | None:
        """What people want of the group; None: they have said nothing."""
        return self.desired.message if self.desired is not None else None

    @property
    def run_state(self) -> RunState:
        """What people want of the group as a whole; that it runs, until they say otherwise."""
        return self.desired.message.state if self.desired is not None else RunState.RUNNING

    def current(self) -> Assignment:
        """Partition -> consumer by the reports of those that have not ended.

        Where two claim one, the one whose Assignment has it counts: who comes back after a suspicion goes on claiming
        what others have, until it has read that it is to let go. Else the newer one.
        """
        newest = {view.member.incarnation for view in self.newest().values()}
        ranked = sorted(self.members.values(), key=lambda view: (view.member.incarnation in newest, view.joined))
        return _claimed(
            tuple(
                _Reported(
                    v.member.consumer, v.report.owned, v.assignment.message.owned if v.assignment else frozenset()
                )
                for v in ranked
                if v.report is not None and not v.ended
            )
        )

    def zones(self) -> Mapping[ConsumerId, str]:
        """Zone of each consumer whose newest incarnation lives and reports one; the next may start in another."""
        reports = ((consumer, member.report) for consumer, member in self.newest().items() if not member.ended)
        return {consumer: report.zone for consumer, report in reports if report is not None and report.zone}

    def joined(self, suspected: Collection[Incarnation] = frozenset()) -> frozenset[ConsumerId]:
        """Consumers that can be given partitions: the newest incarnation reports, and was not told to end."""
        return frozenset(
            consumer
            for consumer, view in self.newest().items()
            if view.report is not None
            and not view.ended
            and not view.retiring
            and view.member.incarnation not in suspected
        )


class _Reported(NamedTuple):
    """Claim of one incarnation: what it reports, and what it was assigned."""

    consumer: ConsumerId
    owned: frozenset[TopicPartition]
    assigned: frozenset[TopicPartition]


@kept
def _claimed(claims: tuple[_Reported, ...]) -> Assignment:
    found: dict[TopicPartition, ConsumerId] = {}
    for claim in claims:
        found.update(dict.fromkeys(claim.owned, claim.consumer))
    for claim in claims:
        found.update(dict.fromkeys(claim.owned & claim.assigned, claim.consumer))
    return found


class _Draft:
    def __init__(self, view: GroupView) -> None:
        self._view = view
        self._members = dict(view.members)
        self._dead = set(view.dead)
        self._unmarked = set(view.unmarked)
        self._failures = dict(view.failures)

    def take(self, received: Received[Message], last_seen_at: float) -> None:
        message, where = received.message, (received.offset, received.timestamp_ms)
        match message:
            case Report() | Heartbeat():
                self._take_report(message, *where, last_seen_at)
            case MemberAssignment():
                self._take_assignment(Received(message, *where))
            case Tombstone():
                self.bury(message.member.incarnation)
                self._dead.add(message.member.incarnation)
                self._unmarked.discard(message.member)
            case Starting():
                pass  # no member: it can be given nothing, and an older incarnation of its number reads on
            case Target():
                self._view = replace(self._view, target=_newest(self._view.target, Received(message, *where)))
            case DesiredState():
                self._view = replace(self._view, desired=_newest(self._view.desired, Received(message, *where)))
            case DesiredVersion():
                self._view = replace(self._view, asked=_newest(self._view.asked, Received(message, *where)))

    def bury(self, incarnation: Incarnation) -> None:
        view = self._members.pop(incarnation, None)
        if view is not None:
            self._dead.add(incarnation)
            self._unmarked.add(view.member)

    def finished(self, since: float | None) -> GroupView:
        target = self._view.target
        listed = {member.incarnation: i for i, member in enumerate(target.message.known)} if target else {}
        return replace(
            self._view,
            members=_ranked(self._members.values(), listed),
            dead=frozenset(self._dead),
            unmarked=frozenset(self._unmarked),
            failures=self._failures,
            since=since,
        )

    def _take_report(self, report: Report | Heartbeat, offset: int, timestamp_ms: int, last_seen_at: float) -> None:
        view = self._member(report.member)
        if view is not None and report.sequence <= view.sequence:
            return
        if isinstance(report, Report):
            self._failures.pop(report.member.consumer, None)
            if report.why:
                self._failures[report.member.consumer] = report.why
        if view is None:
            return
        self._members[report.member.incarnation] = view.with_sign(report, offset, timestamp_ms, last_seen_at)

    def _take_assignment(self, received: Received[MemberAssignment]) -> None:
        view = self._member(received.message.member)
        if view is not None and (view.assignment is None or received.offset > view.assignment.offset):
            self._members[view.member.incarnation] = replace(view, assignment=received)

    def _member(self, member: Member) -> MemberView | None:
        if member.incarnation in self._dead:
            return None
        return self._members.get(member.incarnation) or MemberView(member)


def _newest(known: Received[_M] | None, come: Received[_M]) -> Received[_M]:
    return come if known is None or come.offset > known.offset else known


def _ranked(views: Iterable[MemberView], listed: Mapping[Incarnation, int]) -> Mapping[Incarnation, MemberView]:
    def joined(view: MemberView) -> tuple[int, int, Member]:
        if view.member.incarnation in listed:
            return 0, listed[view.member.incarnation], view.member
        if view.first_heard is not None:
            return 2, view.first_heard, view.member
        return 1, view.assignment.offset if view.assignment else -1, view.member

    return {
        view.member.incarnation: view if view.joined == rank else replace(view, joined=rank)
        for rank, view in enumerate(sorted(views, key=joined))
    }
