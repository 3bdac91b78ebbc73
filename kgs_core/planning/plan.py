"""The plan: who shall read what, what moves for it, and what it costs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgs_core.config.packing import PackingSettings
from kgs_core.errors import ConfigError
from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds
from kgs_core.packing import (
    ALGORITHMS,
    WEIGHING,
    Classes,
    Packed,
    PackingProblem,
    RandomSource,
    Zones,
    near,
    pack_classes,
    parse_name,
    rebalanced,
    rscore,
)
from kgs_core.packing.registry import OWN
from kgs_core.planning.group import Group
from kgs_core.planning.load import Load
from kgs_core.planning.overload import Overload, consumer_loads, fast_partitions, full_consumers
from kgs_core.planning.placement import pinned_partitions, to_joined


@dataclass(frozen=True, slots=True)
class Move:
    """One partition that changes its consumer; `bytes_per_s` is its write speed."""

    partition: TopicPartition
    source: ConsumerId
    destination: ConsumerId
    bytes_per_s: BytesPerSecond


@dataclass(frozen=True, slots=True)
class Alternative:
    """Outcome of another algorithm for the same load."""

    algorithm: str
    consumers: int
    rscore: float
    moved: int
    max_load_bytes_per_s: BytesPerSecond


@dataclass(frozen=True, slots=True)
class Plan:
    """Assignment of partitions to consumers, and what the change to it costs.

    Attributes:
        capacity: C that was packed with, bytes/s: of the first class, where consumers are of several.
        moves: from the fastest partition to the slowest.
        rscore: of the moves; dimensionless, at write speeds.
        load: what each consumer is given, bytes/s, by number.
        create: numbers to start, ascending; spares among them.
        retire: numbers to end once they read nothing, ascending.
        spares: numbers that shall run and read nothing, ascending.
        overloaded: what does not fit below C, each with its cure.
        alternatives: the same by other algorithms, or by other settings of this one, as asked for.
        choice: why this setting of the algorithm; empty if it has none.
        held_back: why the controller would not carry it out now; empty: nothing holds it back.
        pinned: partitions that had to stay although their consumer is given more than C.
        classes: class of each consumer, spares among them; empty without classes.
        capacities: of these consumers, bytes/s.
        price: of the consumers that read, in those of the cheapest class; their number without classes.
        cross_zone_bytes_per_s: write speed of what is read in another zone than its leader's; None: no zones are known.
        measured, group, packing: what it was made of.
    """

    algorithm: str
    capacity: BytesPerSecond
    target: Assignment
    moves: tuple[Move, ...]
    rscore: float
    load: Mapping[ConsumerId, BytesPerSecond]
    create: tuple[ConsumerId, ...]
    retire: tuple[ConsumerId, ...]
    spares: tuple[ConsumerId, ...]
    measured: Load
    group: Group
    packing: PackingSettings
    overloaded: tuple[Overload, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    choice: str = ""
    held_back: str = ""
    pinned: frozenset[TopicPartition] = frozenset()
    classes: Mapping[ConsumerId, str] = field(default_factory=dict)
    capacities: Mapping[ConsumerId, BytesPerSecond] = field(default_factory=dict)
    price: float = 0.0
    cross_zone_bytes_per_s: BytesPerSecond | None = None

    def capacity_of(self, consumer: ConsumerId) -> BytesPerSecond:
        """C of this consumer, bytes/s."""
        return self.capacities.get(consumer, self.capacity)

    @property
    def consumers(self) -> int:
        """How many consumers read something."""
        return len(self.load)

    def summary(self) -> Alternative:
        """The plan as one row of a comparison."""
        most = max(self.load.values(), default=0.0)
        return Alternative(self.algorithm, self.consumers, self.rscore, len(self.moves), most)


@dataclass(frozen=True, slots=True)
class _Step:
    """Input of all algorithms that are tried."""

    problem: PackingProblem
    load: Load
    group: Group
    settings: PackingSettings
    new_random: Callable[[], RandomSource]


def make_plan(
    load: Load,
    group: Group,
    settings: PackingSettings,
    new_random: Callable[[], RandomSource],
    compare: Sequence[str] = (),
) -> Plan:
    """The plan of `settings.algorithm` for this load and group.

    A partition whose speed is unknown keeps its consumer, unless that one was quarantined. While a speed is unknown, or
    a partition is unread, only what must move does: nobody who reads is given up, and no better packing is looked for.
    What is unread goes to consumers that have joined, as far as they have room: see `to_joined`.

    Args:
        group: the consumers as they are; what they read beside `load` is passed over.
        new_random: makes a generator, the same one every time, so that no algorithm's result depends on which others
            were asked.
        compare: names of algorithms to try beside it; with a setting, as in `search@0.8`, of those that have one.
    """
    step = _Step(_problem(load, group, settings), load, group, settings, new_random)
    others = [name for name in compare if name != settings.algorithm and _can(name, settings)]
    alternatives = tuple(_plan(name, step).summary() for name in others)
    return replace(_plan(settings.algorithm, step), choice=_choice(settings), alternatives=alternatives)


def _choice(settings: PackingSettings) -> str:
    if settings.algorithm not in WEIGHING:
        return ""
    if settings.weight is None:
        return "fewest consumers"
    return f"one consumer is worth moving {settings.weight:.0%} of a consumer's capacity"


def _problem(load: Load, group: Group, settings: PackingSettings) -> PackingProblem:
    speeds = load.write_speeds()
    current = {p: consumer for p, consumer in group.current.items() if p in speeds}
    spares, unread = group.spares, frozenset[TopicPartition]()
    readers = group.readers
    if readers is not None and (unread := readers.unread(speeds.keys())):
        homes = {p: consumer for p, consumer in readers.had.items() if p in speeds} | current
        classes = settings.classes_of(group.classes)
        current = to_joined(homes, readers, speeds, classes.capacity(settings.packing_capacity))
        spares -= set(current.values())
    usable = {p: consumer for p, consumer in current.items() if consumer not in group.quarantined}
    pinned = load.unknown & usable.keys()
    if unread or load.unknown:
        classes = settings.classes_of(group.classes)
        pinned |= pinned_partitions(usable, speeds, classes.capacity(settings.consumer_capacity))
    return PackingProblem(
        speeds=speeds,
        capacity=settings.packing_capacity,
        current=current,
        pinned=pinned,
        spares=spares,
        quarantined=group.quarantined,
        min_consumers=settings.min_consumers,
        max_consumers=settings.max_consumers,
        consumer_weight=settings.weight,
        earlier=load.earlier,
        zones=Zones(group.zones, load.zones, settings.cross_zone_weight),
    )


def _plan(name: str, step: _Step) -> Plan:
    """By the algorithm of this name, which may have a setting."""
    problem = step.problem
    algorithm, at, _ = name.partition("@")
    meant = parse_name(name)
    if at and meant is not None:
        problem = replace(problem, consumer_weight=meant[1])
    packed, chosen = _packed(algorithm, problem, step)
    unsaid = dict.fromkeys(step.group.running, "")  # who runs without a class is of the first
    classes = step.settings.classes_of({**unsaid, **step.group.classes, **chosen}, step.group.quarantined)
    packed = near(packed, problem, classes)
    if step.group.readers is not None:
        packed = to_joined(packed, step.group.readers, problem.speeds, classes.capacity(problem.capacity))
    target, had = dict(sorted(packed.items())), step.group.had
    loads = consumer_loads(target, problem.speeds)
    spares = step.group.choose_spares(loads.keys(), step.settings.spare_consumers)
    needed, running = {*loads, *spares}, step.group.running
    if classes.sizes:  # a spare may have to take over the fullest share
        classes = classes.with_new(needed, classes.cheapest_for(max(loads.values(), default=0.0)))
    capacity_of = classes.capacity(problem.capacity)
    return Plan(
        algorithm=name,
        capacity=problem.capacity,
        target=target,
        moves=moves_between(had, target, problem.speeds),
        rscore=rscore(had, target, problem.speeds, problem.capacity),
        load=loads,
        create=tuple(sorted(needed - running)),
        retire=tuple(sorted(running - needed)),
        spares=spares,
        measured=step.load,
        group=step.group,
        packing=step.settings,
        overloaded=_overloads(algorithm, target, step, classes),
        pinned=frozenset(p for p in problem.pinned if loads[target[p]] > capacity_of(target[p])),
        classes=classes.of if classes.sizes else {},
        capacities={consumer: capacity_of(consumer) for consumer in classes.of} if classes.sizes else {},
        price=classes.price(loads.keys()),
        cross_zone_bytes_per_s=problem.zones.far(target, problem.speeds),
    )


def _can(name: str, settings: PackingSettings) -> bool:
    return not settings.classes or name.partition("@")[0] in OWN


def _packed(algorithm: str, problem: PackingProblem, step: _Step) -> Packed:
    if not _can(algorithm, step.settings):
        raise ConfigError([f"algorithm '{algorithm}' cannot pack classes of consumers: use one of {', '.join(OWN)}"])
    classes = step.settings.classes_of(step.group.classes, step.group.quarantined)
    return pack_classes(ALGORITHMS[algorithm], problem, classes, step.new_random)


def moves_between(had: Assignment, target: Assignment, speeds: WriteSpeeds) -> tuple[Move, ...]:
    """What changes its consumer, from the fastest partition to the slowest."""
    moves = [Move(p, had[p], target[p], speeds.get(p, 0.0)) for p in rebalanced(had, target)]
    return tuple(sorted(moves, key=lambda move: (-move.bytes_per_s, move.partition)))


def _overloads(name: str, target: Assignment, step: _Step, classes: Classes) -> tuple[Overload, ...]:
    problem, capacity_of = step.problem, classes.capacity(step.problem.capacity)
    fast = fast_partitions(target, problem.speeds, problem.capacity * classes.largest)
    full = full_consumers(target, problem.speeds, capacity_of, None)
    if full and problem.max_consumers is not None:
        unbound = _packed(name, replace(problem, max_consumers=None), step).assignment
        needed = len(set(unbound.values()))
        if needed > len(set(target.values())):
            full = full_consumers(target, problem.speeds, capacity_of, needed)
    return (*fast, *full)
