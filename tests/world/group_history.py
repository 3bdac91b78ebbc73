"""Invariants of the group's topics: S1, S4, S7 and S9 over records in their order.

It knows the rules and not how they are kept: nothing here is shared with the code that it checks.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgs_core.group.invariants.assignments import check_single_owner, check_target
from kgs_core.group.protocol import (
    DesiredState,
    DesiredVersion,
    Heartbeat,
    Incarnation,
    Member,
    MemberAssignment,
    Message,
    Phase,
    Received,
    Report,
    Starting,
    Target,
    Tombstone,
)
from kgs_core.model import TopicPartition
from tests.world.group_events import Event, Fact, FactKind

_NOTHING: frozenset[TopicPartition] = frozenset()


@dataclass(slots=True)
class _Incarnation:
    """Life of one incarnation as the records so far tell it."""

    member: Member
    report: Report | None = None
    sequence: int = -1
    assignment: Received[MemberAssignment] | None = None
    assignments: dict[int, MemberAssignment] = field(default_factory=dict)
    dead: bool = False
    suspected: bool = False
    # Given to others because this one was silent: its claim to them is known to be stale, until it says so itself
    lost: set[TopicPartition] = field(default_factory=set)

    @property
    def over(self) -> bool:
        return self.dead or (self.report is not None and self.report.phase is Phase.ENDED)

    @property
    def reported(self) -> frozenset[TopicPartition]:
        return _NOTHING if self.report is None or self.over else self.report.owned

    @property
    def possible(self) -> frozenset[TopicPartition]:
        if self.over:
            return _NOTHING
        applied = self.report.applied if self.report else None
        if self.assignment is None or (applied is not None and applied >= self.assignment.offset):
            return self.reported
        return self.reported | self.assignment.message.owned | self.assignment.message.revoking


class GroupHistory:
    """The group as its records tell it, from the first one on; what breaks a rule is reported when it comes.

    Records come in the order in which they were appended, as far as one can tell: those of one partition in their
    order, a report before the Assignments that were written because of it. A doubled one says nothing new.
    """

    def __init__(self, *, strict: bool = False, max_consumers: int | None = None) -> None:
        """For a group with these settings.

        Args:
            strict: suspicion frees no partition.
            max_consumers: the bound that Targets were made with.
        """
        self._strict = strict
        self._max_consumers = max_consumers
        self._lives: dict[Incarnation, _Incarnation] = {}
        self._gone: dict[Incarnation, FactKind] = {}
        self._target_offset = -1

    def take(self, events: Iterable[Event], torn: Collection[Incarnation] = ()) -> tuple[str, ...]:
        """Go on by one step, whose events took effect together, such as the records of a transaction.

        `torn`: whose newest Assignment Kafka has left out of a transaction that it has committed elsewhere.

        Returns:
            What is wrong, a line each; empty: nothing.
        """
        problems: list[str] = []
        for event in events:
            problems += self.take_part(event)
        return (*problems, *self.check_assignments(torn))

    def take_part(self, event: Event) -> list[str]:
        """Go on by one event of a step that is not over: a transaction may be half read."""
        return self._take_fact(event) if isinstance(event, Fact) else self._take_record(event)

    def check_assignments(self, torn: Collection[Incarnation] = ()) -> tuple[str, ...]:
        """S1 of the last Assignments: a suspect loses a partition in the transaction in which another gains it.

        Of one that is torn, it loses it by the next: the controller does not know the outcome, and reads anew.
        """
        assigned = {
            str(life.member): life.assignment.message.owned
            - (life.lost if life.member.incarnation in torn else _NOTHING)
            for life in self._lives.values()
            if life.assignment is not None and not life.over
        }
        return tuple(f"S1 by Assignments: {line}" for line in check_single_owner(assigned))

    def check_owners(self, owned: Mapping[Member, Collection[TopicPartition]]) -> tuple[str, ...]:
        """S1 of what live processes really hold, where that can be seen; after a suspicion the stale owner is right."""
        return check_single_owner({str(member): set(held) - self._life(member).lost for member, held in owned.items()})

    def _take_record(self, received: Received[Message]) -> list[str]:
        match received.message:
            case Target():
                return self._take_target(received.message, received.offset)
            case MemberAssignment():
                return self._take_assignment(Received(received.message, received.offset, received.timestamp_ms))
            case Report() | Heartbeat():
                return self._take_report(received.message)
            case Tombstone():
                self._life(received.message.member).dead = True
            case Starting() | DesiredState() | DesiredVersion():
                pass
        return []

    def _take_fact(self, fact: Fact) -> list[str]:
        life = self._lives.get(fact.incarnation)
        if life is None:
            self._gone[fact.incarnation] = fact.kind
        else:
            _put(life, fact.kind)
        return []

    def _take_target(self, target: Target, offset: int) -> list[str]:
        if offset <= self._target_offset:
            return []
        self._target_offset = offset
        return [f"S6 in Target {offset}: {line}" for line in check_target(target, max_consumers=self._max_consumers)]

    def _take_assignment(self, received: Received[MemberAssignment]) -> list[str]:
        assignment, life = received.message, self._life(received.message.member)
        if life.assignment is not None and received.offset <= life.assignment.offset:
            return []
        last = life.assignment.message if life.assignment else MemberAssignment(assignment.member)
        entered = assignment.owned - last.owned
        problems = [
            *self._check_start(life, entered),
            *_check_retire(life, last, assignment),
            *(
                f"{p}: {life.member} is to own it and to give it up at once"
                for p in sorted(assignment.owned & assignment.revoking)
            ),
            *(
                f"S4 {p}: {life.member} may still hold it, and its Assignment does not say so"
                for p in sorted(life.possible - assignment.owned - assignment.revoking)
            ),
        ]
        life.lost -= entered
        life.assignment = received
        life.assignments[received.offset] = assignment
        return problems

    def _check_start(self, life: _Incarnation, entered: frozenset[TopicPartition]) -> list[str]:
        """S4: p may enter an Assignment when nobody else possibly owns it, or who does is suspected."""
        problems = []
        for other in self._lives.values():
            shared = entered & other.possible if other is not life and entered else _NOTHING
            if other.suspected and not self._strict:
                other.lost |= shared
            else:
                problems += [
                    f"S4 {p}: enters the Assignment of {life.member} while {other.member} may hold it"
                    for p in sorted(shared)
                ]
        return problems

    def _take_report(self, report: Report | Heartbeat) -> list[str]:
        life = self._life(report.member)
        if report.sequence <= life.sequence:
            return []
        life.sequence = report.sequence
        if isinstance(report, Heartbeat):
            life.report = life.report and replace(life.report, phase=report.phase)
            return []
        problems = _check_applied(life, report)
        life.report = report
        life.lost &= life.possible
        reported = {str(life.member): life.reported - life.lost for life in self._lives.values()}
        return [*problems, *(f"S1 by reports: {line}" for line in check_single_owner(reported))]

    def _life(self, member: Member) -> _Incarnation:
        life = self._lives.get(member.incarnation)
        if life is None:
            life = self._lives[member.incarnation] = _Incarnation(member)
            if member.incarnation in self._gone:
                _put(life, self._gone.pop(member.incarnation))
        return life


def check_history(
    events: Sequence[Event], *, strict: bool = False, max_consumers: int | None = None
) -> tuple[str, ...]:
    """Everything that is wrong with a whole history; for the meaning see `GroupHistory`.

    Where a transaction ends cannot be told from its records, so the Assignments are compared with each other at the end
    of the history only. On the way, S4 says when one gains what another may hold.
    """
    history = GroupHistory(strict=strict, max_consumers=max_consumers)
    problems = [problem for event in events for problem in history.take_part(event)]
    return tuple(dict.fromkeys((*problems, *history.check_assignments())))


def _check_retire(life: _Incarnation, last: MemberAssignment, assignment: MemberAssignment) -> list[str]:
    problems = []
    if last.retire and not assignment.retire:
        problems.append(f"S7 {life.member}: was told to end, which is for good")
    if assignment.retire and assignment.owned:
        problems.append(f"S7 {life.member}: is told to end, and given {_names(assignment.owned)}")
    if assignment.retire and life.possible:
        problems.append(f"S7 {life.member}: is told to end while it may hold {_names(life.possible)}")
    return problems


def _check_applied(life: _Incarnation, report: Report) -> list[str]:
    """S9, rules 2 and 5: nothing is owned but by the Assignment applied, and what comes back comes by a new one."""
    problems = []
    assignment = life.assignments.get(report.applied) if report.applied is not None else None
    before = life.report
    if report.applied is None and report.owned:
        problems.append(f"{life.member}: owns {_names(report.owned)} and was assigned nothing")
    elif assignment is not None and report.owned - assignment.owned:
        problems.append(
            f"{life.member}: owns {_names(report.owned - assignment.owned)}, which the Assignment that it applied "
            f"({report.applied}) does not give it"
        )
    if before is not None and report.applied is not None and before.applied is not None:
        again = report.owned - before.owned if report.applied <= before.applied else _NOTHING
        problems += [f"S9 {p}: {life.member} started it without a new Assignment" for p in sorted(again)]
    return problems


def _put(life: _Incarnation, kind: FactKind) -> None:
    if kind is FactKind.DEAD:
        life.dead = True
    else:
        life.suspected = kind is FactKind.SUSPECTED


def _names(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(str(p) for p in sorted(partitions))
