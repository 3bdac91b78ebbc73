"""A small group with everything that can happen to it, explored to the end: processes, controllers, crashes, delays.

Every record is durable at once; whoever reads it may be late: a controller decides on what it read last, a process has
yet to read its queue. What is lost or doubled on the way is a delay, or changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from kgs_core.group.invariants.assignments import check_single_owner
from kgs_core.group.protocol import Incarnation, Member, MemberAssignment, Message, Phase, Received, Report, Target
from kgs_core.group.view.events import Write
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.reconcile import reconcile
from kgs_core.model import Assignment, ConsumerId, TopicPartition
from tests.processes import a_process
from tests.world.group_events import Event, Fact, FactKind

HERE = a_process()
NOTHING: frozenset[TopicPartition] = frozenset()
P, Q = TopicPartition("t", 0), TopicPartition("t", 1)
Reconcile = Callable[..., Write]


@dataclass(frozen=True)
class Scope:
    """What may happen, how often, and under which rules; the rules that are not kept are the mutants'."""

    plans: tuple[Assignment, ...]
    crashes: int = 0
    twins: int = 0
    successors: int = 0
    silences: int = 0
    strict: bool = True
    reconcile: Reconcile = reconcile
    fencing: bool = True
    takes_others_assignments: bool = False
    reports_first: bool = False
    late_reports: bool = False
    spares: bool = True

    @property
    def consumers(self) -> tuple[ConsumerId, ...]:
        return tuple(sorted({c for plan in self.plans for c in plan.values()}))


@dataclass(frozen=True)
class Life:
    """One process.

    `unread` are the Assignments in its queue that are for it, with `hasty` those for others of its consumer, too. It is
    dirty while its report is behind; `to_act_on` is what it reported before it acted.
    """

    member: Member
    owned: frozenset[TopicPartition] = NOTHING
    applied: int | None = None
    unread: tuple[tuple[int, MemberAssignment], ...] = ()
    dirty: bool = False
    alive: bool = True
    ended: bool = False
    to_act_on: frozenset[TopicPartition] | None = None
    hasty: bool = False

    def reads_all_of(self, assignment: MemberAssignment) -> bool:
        return self.hasty and self.member.consumer == assignment.member.consumer


@dataclass(frozen=True)
class State:
    log: GroupView = field(default_factory=GroupView)
    controllers: tuple[GroupView, ...] = ()
    lives: tuple[Life, ...] = ()
    end: int = 0
    plan: int = 0
    crashes: int = 0
    twins: int = 0
    successors: int = 0
    silences: int = 0

    def key(self) -> object:
        """Equal for states that nothing can ever tell apart: of offsets only the order counts."""
        views = (self.log, *self.controllers)
        offsets = {o for life in self.lives for o in (life.applied, *(offset for offset, _ in life.unread))}
        for view in views:
            offsets |= {m.assignment.offset for m in view.members.values() if m.assignment}
            offsets |= {m.report.applied for m in view.members.values() if m.report}
        rank = {offset: i for i, offset in enumerate(sorted(offsets - {None}))}
        lives = tuple(
            (
                life.member,
                life.owned,
                rank.get(life.applied),
                tuple((rank[offset], assignment) for offset, assignment in life.unread),
                (life.dirty, life.alive, life.ended, life.to_act_on),
            )
            for life in self.lives
        )
        return (
            tuple(_view_key(view, rank) for view in views),
            lives,
            (self.plan, self.crashes, self.twins, self.successors, self.silences),
        )

    def owners(self) -> dict[Member, frozenset[TopicPartition]]:
        return {life.member: life.owned for life in self.lives if life.alive}

    def double_owners(self) -> tuple[str, ...]:
        return check_single_owner({str(member): owned for member, owned in self.owners().items()})

    def append(self, *messages: Message) -> tuple["State", list[Received[Message]]]:
        """Durable, and on its way to whoever reads."""
        records = [Received(message, self.end + i, 0) for i, message in enumerate(messages)]
        lives = self.lives
        for record in records:
            assignment = record.message
            if isinstance(assignment, MemberAssignment):
                lives = tuple(
                    replace(life, unread=(*life.unread, (record.offset, assignment)))
                    if life.alive and (life.member == assignment.member or life.reads_all_of(assignment))
                    else life
                    for life in lives
                )
        log = self.log.take_all(records, 0.0)
        return replace(self, log=log, lives=lives, end=self.end + len(records)), records

    def with_life(self, number: int, **changes: object) -> "State":
        lives = list(self.lives)
        lives[number] = replace(lives[number], **changes)
        return replace(self, lives=tuple(lives))


@dataclass(frozen=True)
class Step:
    """Something that happens, and what it leads to.

    `rank`: which comes first when the group is left alone; None: then it does not happen.
    """

    name: str
    rank: int | None
    state: State
    events: tuple[Event, ...] = ()
    wrong: str = ""


def _view_key(view: GroupView, rank: dict[int, int]) -> object:
    members = tuple(
        (
            m.member,
            (m.report.owned, m.report.phase, rank.get(m.report.applied)) if m.report else None,
            (rank[m.assignment.offset], m.assignment.message) if m.assignment else None,
        )
        for m in view.members.values()
    )
    target = view.target.message.known if view.target else None
    return members, view.dead, view.unmarked, target


def first_step(scope: Scope) -> Step:
    """One process of each consumer has joined; one controller knows nothing but that."""
    state = State(crashes=scope.crashes, twins=scope.twins, successors=scope.successors, silences=scope.silences)
    state, records = state.append(_target(scope, 0, ()))
    events: list[Event] = [*records]
    for consumer in scope.consumers:
        started = _started(scope, state, consumer)
        state = started.state
        events += started.events
    return Step("", None, replace(state, controllers=(state.log,)), tuple(events))


def steps(scope: Scope, state: State) -> Iterator[Step]:
    """Everything that can happen next."""
    for number, life in enumerate(state.lives):
        if life.alive:
            yield from _life_steps(scope, state, number)
    yield from _starts(scope, state)
    for number in range(len(state.controllers)):
        yield from _controller_steps(scope, state, number)
    if state.successors:
        kept = () if scope.fencing else state.controllers
        yield Step(
            "another controller",
            None,
            replace(state, controllers=(*kept, state.log), successors=state.successors - 1),
        )


def _life_steps(scope: Scope, state: State, number: int) -> Iterator[Step]:
    life = state.lives[number]
    if life.to_act_on is not None and not life.dirty:
        yield Step("act", 0, state.with_life(number, owned=life.to_act_on, to_act_on=None))
    elif life.unread:
        step = _read(scope, state, number)
        yield step if scope.late_reports else _reported(step, number)
    if life.dirty:
        yield _reported(Step("", None, state), number)
    if state.crashes:
        dead = Fact(life.member.incarnation, FactKind.DEAD, 0)
        yield Step("crash", None, replace(_without(state, number), crashes=state.crashes - 1), (dead,))


def _reported(step: Step, number: int) -> Step:
    life = step.state.lives[number]
    phase = Phase.ENDED if life.ended else Phase.READING
    owned = life.owned if life.to_act_on is None else life.to_act_on
    after = step.state.with_life(number, dirty=False, alive=not life.ended)
    after, records = after.append(_report(life, owned, phase, after.end))
    return Step(f"{step.name} report", 1, after, tuple(records), step.wrong)


def _without(state: State, number: int) -> State:
    return state.with_life(number, alive=False, owned=NOTHING, applied=None, unread=(), dirty=False, to_act_on=None)


def _read(scope: Scope, state: State, number: int) -> Step:
    life = state.lives[number]
    (offset, assignment), *rest = life.unread
    state = state.with_life(number, unread=tuple(rest))
    wrong = f"{life.member} retires with {sorted(life.owned)}" if assignment.retire and life.owned else ""
    acts = {"to_act_on": assignment.owned} if scope.reports_first else {"owned": assignment.owned}
    state = state.with_life(number, applied=offset, dirty=True, ended=assignment.retire, **acts)
    return Step("read", 0, state, wrong=wrong)


def _starts(scope: Scope, state: State) -> Iterator[Step]:
    target = state.log.target.message
    for consumer in target.consumers:
        if not any(life.alive and life.member.consumer == consumer for life in state.lives):
            yield _started(scope, state, consumer)
    if state.twins:
        for consumer in scope.consumers:
            step = _started(scope, state, consumer)
            yield replace(step, rank=None, state=replace(step.state, twins=state.twins - 1))


def _started(scope: Scope, state: State, consumer: ConsumerId) -> Step:
    member = Member(consumer, Incarnation(f"{consumer}{'abcdefgh'[len(state.lives)]}"))
    life = Life(member, hasty=scope.takes_others_assignments)
    state, records = replace(state, lives=(*state.lives, life)).append(_report(life, NOTHING, Phase.READING, state.end))
    return Step("start", 5, state, tuple(records))


def _controller_steps(scope: Scope, state: State, number: int) -> Iterator[Step]:
    view = state.controllers[number]
    polled = state.log.bury(view.dead)
    if polled != view:
        yield Step("poll", 2, _with_controller(state, number, polled))
    for life in state.lives:
        if not life.alive and life.member.incarnation in view.members:
            yield Step("confirm", 3, _with_controller(state, number, view.bury([life.member.incarnation])))
    yield from _writes(scope, state, number, frozenset())
    for incarnation in view.members if state.silences else ():
        for step in _writes(scope, state, number, frozenset({incarnation})):
            silence, sound = (Fact(incarnation, kind, 0) for kind in (FactKind.SUSPECTED, FactKind.HEARD))
            after = replace(step.state, silences=state.silences - 1)
            yield Step("write in silence", None, after, (silence, *step.events, sound))
    if state.plan + 1 < len(scope.plans):
        after, records = state.append(_target(scope, state.plan + 1, view.known))
        after = _with_controller(replace(after, plan=state.plan + 1), number, view.take_all(records, 0.0))
        yield Step("plan", 6, after, tuple(records))


def _writes(scope: Scope, state: State, number: int, suspected: frozenset[Incarnation]) -> Iterator[Step]:
    view = state.controllers[number]
    target = view.target.message
    changes = scope.reconcile(view, target.assignment, target.consumers, suspected, strict=scope.strict)
    if changes:
        after, records = state.append(*changes.assignments, *changes.tombstones)
        after = _with_controller(after, number, view.take_all(records, 0.0))
        yield Step("write", 4, after, tuple(records))


def _with_controller(state: State, number: int, view: GroupView) -> State:
    controllers = list(state.controllers)
    controllers[number] = view
    return replace(state, controllers=tuple(controllers))


def _target(scope: Scope, number: int, known: Iterable[Member]) -> Target:
    plan = scope.plans[number]
    spares = tuple(c for c in scope.consumers if scope.spares and c not in plan.values())
    return Target("mwf", plan, spares, dict.fromkeys(plan, 1.0), 9.0, 0.0, "", tuple(known), (), 0)


def _report(life: Life, owned: frozenset[TopicPartition], phase: Phase, sequence: int) -> Report:
    return Report(life.member, sequence, phase, 0.0, None, HERE, life.applied, owned)
