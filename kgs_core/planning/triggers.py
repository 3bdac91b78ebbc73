"""The Sentinel state: what in the group or its load asks for another plan, and whether that plan is worth a run."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kgs_core.config.packing import PackingSettings
from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds
from kgs_core.packing import Classes, RandomSource, Zones, rscore
from kgs_core.planning.group import Group
from kgs_core.planning.kept import kept
from kgs_core.planning.load import Load
from kgs_core.planning.placement import Readers
from kgs_core.planning.plan import Plan, make_plan
from kgs_core.planning.rebalance_budget import HeldBack, over_budget
from kgs_core.planning.shares import shares_of

RELIEF = 0.1
"""Share of the load above capacity that a plan must take away: less would move partitions at every look for nothing."""
_SHOWN = 5


class Reason(StrEnum):
    """Reason to leave the Sentinel state."""

    OVERLOADED = "consumer above consumer_capacity"
    UNOWNED = "partition without owner"
    LOST = "consumer lost"
    RESTARTED = "consumer restarted"
    FAILING = "consumer keeps failing"
    CHANGED = "topics or partitions changed"
    TIMEOUT = "looking for a better packing"


@dataclass(frozen=True, slots=True)
class ExitCondition:
    """One reason that holds, and whom it concerns, ascending."""

    reason: Reason
    consumers: tuple[ConsumerId, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        """`consumer lost: 2, 5`; long lists are cut."""
        concerned = [str(item) for item in (*self.consumers, *self.partitions)]
        more = [f"{len(concerned) - _SHOWN} more"] if len(concerned) > _SHOWN else []
        return f"{self.reason}: {', '.join(concerned[:_SHOWN] + more)}" if concerned else str(self.reason)


@dataclass(frozen=True, slots=True)
class Watched:
    """The group as the Sentinel sees it.

    Attributes:
        target: as the newest Target has it.
        current: who reads what, by the reports of living incarnations.
        joined: consumers with a living incarnation that has reported.
        lost: consumers whose incarnation is dead or suspected, and that nobody is starting.
        restarted: consumers whose incarnation is newer than the Target.
        failing: consumers that are quarantined, because every start of them fails.
        unusable: numbers that cannot be started, because a process of theirs that is of no use may still live: they
            read on where they read, but no other partition is given to them.
        moved_rscore: Rscore of all changes within the last hour.
        classes: class of each consumer that has one: as it says itself, else as the Target has it.
        zones: zone of each consumer, as far as it is known.
    """

    target: Assignment
    current: Assignment
    joined: frozenset[ConsumerId]
    lost: frozenset[ConsumerId] = frozenset()
    restarted: frozenset[ConsumerId] = frozenset()
    failing: frozenset[ConsumerId] = frozenset()
    since_packing_s: float = 0.0
    unusable: frozenset[ConsumerId] = frozenset()
    moved_rscore: float = 0.0
    standing: frozenset[ConsumerId] = frozenset()
    classes: Mapping[ConsumerId, str] = field(default_factory=dict)
    zones: Mapping[ConsumerId, str] = field(default_factory=dict)

    def placed(self) -> Assignment:
        """Where each partition is at home: its owner, else its consumer in the target, unless that one is gone."""
        gone = self.lost | self.failing
        homes = _homes(self.target, self.current)
        return {p: consumer for p, consumer in homes.items() if consumer not in gone} if gone else homes

    def group(self) -> Group:
        """The group as a plan is made for it: while anything is unread, what is planned for the rest stays planned."""
        homes = self.placed()
        if not _are_read(self.target, self.current):
            gone = self.lost | self.failing
            homes = {**homes, **{p: consumer for p, consumer in self.target.items() if consumer not in gone}}
        busy = frozenset(shares_of(homes))
        readers = self.readers()
        return Group(
            current=homes,
            spares=readers.joined - busy,
            quarantined=self.failing | (self.unusable - busy),
            readers=readers,
            standing=self.standing,
            classes=self.classes,
            zones=self.zones,
        )

    def readers(self) -> Readers:
        """Who is there to read."""
        joined = self.joined - self.failing - self.lost
        return Readers(_homes(self.target, self.current), _partitions(self.current), joined)


@kept
def _homes(target: Assignment, current: Assignment) -> Assignment:
    homes = {**target, **current}
    return target if homes == target else homes


@kept
def _are_read(target: Assignment, current: Assignment) -> bool:
    return target.keys() <= current.keys()


@kept
def _partitions(assignment: Assignment) -> frozenset[TopicPartition]:
    return frozenset(assignment)


@dataclass(frozen=True, slots=True)
class RunDecision:
    """Whether a rebalance is due.

    Attributes:
        conditions: for which it is; without a plan those that hold, though nothing is to be done.
        plan: to be carried out; None: no plan is another or a better one, or a better one must wait.
        held_back: why a better one must wait.
    """

    conditions: tuple[ExitCondition, ...] = ()
    plan: Plan | None = None
    held_back: HeldBack | None = None


def decide(
    load: Load, watched: Watched, settings: PackingSettings, new_random: Callable[[], RandomSource]
) -> RunDecision:
    """Whether a rebalance is due, and which.

    Each exit condition asks for a run only if its plan differs from the target, and, beyond that:

    - one about owners or consumers also when the plan is the target's own and a partition only has to be handed over
      to a consumer that has joined: nobody else would carry it out;
    - a consumer above capacity only if the plan relieves it more than the target does, in the end, or by those who have
      joined and no less in the end: a partition too fast for any consumer, `max_consumers`, or a change that is under
      way must not keep the group moving;
    - the timeout only if the plan is better: more consumers where `min_consumers` asks for them, else fewer, then a
      lower Rscore (with the price of what is read across zones); and if the consumers saved are worth what is moved for
      them, by `consumer_weight`; and if nothing else asks, too, only within `max_rscore_per_hour`.

    A partition that is not yet where the target has it asks for nothing: to hand it over needs no other plan.

    References:
        Landau 2022, section "Controller", the Sentinel state.
    """
    conditions = exit_conditions(load, watched, settings)
    if not conditions:
        return RunDecision()
    weight = settings.cross_zone_weight
    if all(condition.reason is not Reason.TIMEOUT for condition in conditions):
        weight = min(weight, 1.0)  # what must move goes near, and nothing else moves for its zone: see `near`
    by = settings.model_copy(update={"cross_zone_weight": weight})
    plan = make_plan(load, watched.group(), by, new_random)
    return judge(plan, conditions, load, watched, settings)


def judge(
    plan: Plan, conditions: tuple[ExitCondition, ...], load: Load, watched: Watched, settings: PackingSettings
) -> RunDecision:
    """Whether `plan` is to be carried out for one of the conditions that hold; see `decide`."""
    asking = tuple(c for c in conditions if _asks(c.reason, plan, load, watched, settings))
    if not asking:
        return RunDecision(conditions)
    if not is_forced(asking):
        held_back = over_budget(plan.rscore, watched.moved_rscore, settings.max_rscore_per_hour)
        if held_back is not None:
            return RunDecision(conditions, held_back=held_back)
    return RunDecision(asking, plan)


def is_forced(conditions: Collection[ExitCondition]) -> bool:
    """Whether a plan is asked for by more than the search for a better packing."""
    return any(condition.reason is not Reason.TIMEOUT for condition in conditions)


def exit_conditions(load: Load, watched: Watched, settings: PackingSettings) -> tuple[ExitCondition, ...]:
    """The exit conditions that hold, in the order of `Reason`.

    The timeout does not count while a speed is unknown: no consumer is given up on missing measurements. Nor does it
    while a partition is unread: what there is to read comes before how well it is packed.
    """
    known = load.write_speeds().keys()
    wanted = shares_of(watched.target).keys()
    owned, target = watched.current.keys(), watched.target.keys()
    are_owned = known <= owned
    has_changed = known != target
    classes = settings.classes_of(watched.classes)
    overloaded = _overloaded(watched.placed(), load.write_speeds(), settings, classes)
    found = (
        ExitCondition(Reason.OVERLOADED, tuple(overloaded)),
        ExitCondition(Reason.UNOWNED, partitions=() if are_owned else tuple(sorted(known - owned))),
        ExitCondition(Reason.LOST, tuple(sorted(watched.lost & wanted))),
        ExitCondition(Reason.RESTARTED, tuple(sorted(watched.restarted & wanted))),
        ExitCondition(Reason.FAILING, tuple(sorted(watched.failing & wanted))),
        ExitCondition(Reason.CHANGED, partitions=tuple(sorted(known ^ target)) if has_changed else ()),
    )
    holding = tuple(condition for condition in found if condition.consumers or condition.partitions)
    is_calm = not load.unknown and are_owned
    if watched.since_packing_s >= settings.sentinel_timeout_s and is_calm:
        return (*holding, ExitCondition(Reason.TIMEOUT))
    return holding


def _asks(reason: Reason, plan: Plan, load: Load, watched: Watched, settings: PackingSettings) -> bool:
    differs = plan.target != watched.target
    match reason:
        case Reason.OVERLOADED:
            return differs and _relieves(plan, load, watched, settings)
        case Reason.TIMEOUT:
            return differs and _is_better(plan, load, watched, settings)
        case Reason.CHANGED:
            return differs
        case _:
            return differs or any(c in watched.joined and watched.current.get(p) != c for p, c in plan.target.items())


def _is_better(plan: Plan, load: Load, watched: Watched, settings: PackingSettings) -> bool:
    speeds = load.write_speeds()
    target = {p: consumer for p, consumer in watched.target.items() if p in speeds}
    zones = Zones(watched.zones, load.zones, settings.cross_zone_weight)
    price = rscore(watched.placed(), target, speeds, plan.capacity) + zones.price(target, speeds, plan.capacity)
    new = plan.rscore + zones.price(plan.target, speeds, plan.capacity)
    reading, wanted = {*target.values()}, min(settings.min_consumers, len({*plan.target.values()}))
    if len(reading) < wanted:  # as where a start has given all to the one that joined first
        return True
    consumers = settings.classes_of(watched.classes).price(reading)
    is_worth_it = settings.weight is None or new - price <= settings.weight * (consumers - plan.price)
    return is_worth_it and (plan.price, new) < (consumers, price)


def _relieves(plan: Plan, load: Load, watched: Watched, settings: PackingSettings) -> bool:
    """Whether it is better in the end, or no worse in the end and better by who has joined."""
    speeds, placed = load.write_speeds(), watched.placed()
    classes = settings.classes_of({**watched.classes, **plan.classes})

    def above(assignment: Assignment) -> float:
        return sum(_overloaded(assignment, speeds, settings, classes).values())

    def at_once(assignment: Assignment) -> float:
        return above({p: c if c in watched.joined else placed.get(p, c) for p, c in assignment.items()})

    def is_less(after: float, before: float) -> bool:
        return before > 0 and after <= (1 - RELIEF) * before

    after, stands = above(plan.target), above(watched.target)
    return is_less(after, stands) or (after <= stands and is_less(at_once(plan.target), at_once(watched.target)))


def _overloaded(
    assignment: Assignment, speeds: WriteSpeeds, settings: PackingSettings, classes: Classes
) -> dict[ConsumerId, BytesPerSecond]:
    """The consumers above their `consumer_capacity` that can be relieved; by how much.

    That is, those that read several partitions, or one that a consumer of a larger class can read.
    """
    largest = settings.consumer_capacity * classes.largest
    found: dict[ConsumerId, BytesPerSecond] = {}
    for consumer, share in sorted(shares_of(assignment).items()):
        read = [speeds[p] for p in share if p in speeds]
        capacity, load = settings.consumer_capacity * classes.share(consumer), math.fsum(read)
        if load > capacity and (len(read) > 1 or load <= largest):
            found[consumer] = load - capacity
    return found
