"""Consumers of several classes: which class each new consumer is of, around any algorithm that packs into unlike bins.

Every class is tried for the new bins. Then each bin becomes that of the cheapest class that its load fits into, if that
is worth the moves; the cheapest of the results counts. So no plan costs more than that of a single class.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import count
from math import fsum, inf
from typing import NamedTuple

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, grouped
from kgs_core.packing.basics.problem import PackFunction, PackingProblem, RandomSource, Size

_ROUNDING = 1e-9
"""Sums of the same speeds differ in their last digits with the order of addition."""


class Packed(NamedTuple):
    """One packing.

    Attributes:
        classes: class of each consumer in it; empty without classes.
    """

    assignment: Assignment
    classes: Mapping[ConsumerId, str]


@dataclass(frozen=True, slots=True)
class Classes:
    """Classes of consumers.

    Attributes:
        sizes: class -> capacity and price, > 0; the first is that of a consumer of whom nothing else is known. Empty:
            all consumers are alike.
        of: class of each consumer that runs or is being started; others can be of any.
        failing: classes that a consumer cannot be started as: no new one is of these, unless all are.
    """

    sizes: Mapping[str, Size]
    of: Mapping[ConsumerId, str]
    failing: frozenset[str] = frozenset()

    @property
    def cheapest(self) -> float:
        """Price of the cheapest class."""
        return min(size.price for size in self.sizes.values())

    @property
    def usable(self) -> Mapping[str, Size]:
        """Those that a new consumer may be of."""
        return {name: size for name, size in self.sizes.items() if name not in self.failing} or self.sizes

    def name(self, consumer: ConsumerId) -> str:
        """Class of a consumer that runs; the first one, if kgs.yaml does not have it."""
        name = self.of.get(consumer, "")
        return name if name in self.sizes else next(iter(self.sizes))

    def share(self, consumer: ConsumerId) -> float:
        """Capacity of a consumer that runs, in those of the first class."""
        if not self.sizes:
            return 1.0
        return self.sizes[self.name(consumer)].capacity / next(iter(self.sizes.values())).capacity

    def capacity(self, of_first: BytesPerSecond) -> Callable[[ConsumerId], BytesPerSecond]:
        """Capacities of consumers that run, where the first class has this one."""
        return lambda consumer: of_first * self.share(consumer)

    @property
    def largest(self) -> float:
        """Capacity of the largest class, in those of the first."""
        sizes = [size.capacity for size in self.sizes.values()]
        return max(sizes) / sizes[0] if sizes else 1.0

    def price(self, consumers: Collection[ConsumerId]) -> float:
        """Price of these, in those of the cheapest class; how many they are, where all are alike."""
        each = [self.sizes[self.name(consumer)].price for consumer in consumers] if self.sizes else []
        return fsum(each) / self.cheapest if self.sizes else len(set(consumers))

    def with_new(self, consumers: Collection[ConsumerId], new: str) -> "Classes":
        """Classes of these consumers alone; a new one has the class `new`."""
        names = {consumer: self.name(consumer) if consumer in self.of else new for consumer in sorted(consumers)}
        return replace(self, of=names)

    def cheapest_for(self, load: BytesPerSecond) -> str:
        """The cheapest class of those that can read so much; the largest, if none can."""
        fitting = [name for name, size in self.usable.items() if load <= size.capacity * (1 + _ROUNDING)]
        if not fitting:
            return max(self.usable, key=lambda name: self.sizes[name].capacity)
        return min(fitting, key=lambda name: self.sizes[name].price)


def pack_classes(
    pack: PackFunction, problem: PackingProblem, classes: Classes, new_random: Callable[[], RandomSource]
) -> Packed:
    """The cheapest packing of `problem`, whose `capacity` is that of the first class.

    `consumer_weight` is what one consumer of the cheapest class is worth, in units of that capacity.
    """
    if not classes.sizes:
        return Packed(pack(problem, new_random()), {})
    known = {*problem.current.values(), *problem.spares, *classes.of}
    sizes = {consumer: classes.sizes[classes.name(consumer)] for consumer in known}
    new: dict[Size, str] = {}
    for name, size in classes.usable.items():
        new.setdefault(size, name)
    steps = [_Trial(problem, classes, sizes, name) for name in new.values()]
    tried = [step.fitted(pack(step.problem, new_random())) for step in steps]
    return min(tried, key=lambda found: found[0])[1]


class _Trial:
    """One class for the new bins."""

    def __init__(self, problem: PackingProblem, classes: Classes, sizes: Mapping[ConsumerId, Size], new: str) -> None:
        """`sizes`: of every consumer that runs; `new`: the class that is tried for new ones."""
        self._given, self._classes, self._sizes, self._new = problem, classes, sizes, new
        self._weight = inf if problem.consumer_weight is None else problem.consumer_weight
        size = classes.sizes[new]
        weight = problem.consumer_weight
        if weight is not None:
            weight *= size.price / classes.cheapest * (problem.capacity / size.capacity)
        self.problem = replace(
            problem,
            capacity=size.capacity,
            consumer_weight=weight,
            unlike={c: Size(own.capacity, own.price / size.price) for c, own in sizes.items() if own != size},
        )

    def fitted(self, packed: Assignment) -> tuple[tuple[float, ...], Packed]:
        """`packed`, with each bin of the class that suits it best, and the order of its cost."""
        given, sizes = self._given, self._classes.sizes
        bins: Mapping[ConsumerId, list[TopicPartition]] = grouped((c, p) for p, c in packed.items())
        found: dict[TopicPartition, ConsumerId] = {}
        names: dict[ConsumerId, str] = {}
        over = 0.0
        for consumer in sorted(bins):
            load = fsum(given.speeds[p] for p in bins[consumer])
            name = self._best(consumer, bins[consumer], load)
            number = consumer if name is None else self._number(consumer, name, {*bins, *names})
            names[number] = self._classes.name(number) if number in self._sizes else name or self._new
            found.update(dict.fromkeys(bins[consumer], number))
            over += max(0.0, load - sizes[names[number]].capacity * (1 + _ROUNDING))
        price = Classes(sizes, names).price(names)
        moved = fsum(given.speeds[p] for p, c in found.items() if given.current.get(p, c) != c) / given.capacity
        cost = (over, price, moved) if self._weight == inf else (over, self._weight * price + moved, len(names))
        return cost, Packed(found, names)

    def _best(self, consumer: ConsumerId, partitions: list[TopicPartition], load: BytesPerSecond) -> str | None:
        """Class that a bin is to have instead of its own; None: it keeps it."""
        given = self._given
        if not given.pinned.isdisjoint(partitions):
            return None
        own = self._sizes.get(consumer, self._classes.sizes[self._new])
        name = self._classes.cheapest_for(load)
        size = self._classes.sizes[name]
        if load > own.capacity * (1 + _ROUNDING):
            return name if size.capacity > own.capacity else None
        at_home = fsum(given.speeds[p] for p in partitions if given.current.get(p) == consumer) / given.capacity
        saved = (own.price - size.price) / self._classes.cheapest
        return name if saved > 0 and self._weight * saved > at_home else None

    def _number(self, consumer: ConsumerId, name: str, used: set[ConsumerId]) -> ConsumerId:
        """A spare of this class, else the bin's own number if that is new, else the lowest free one."""
        size, quarantined = self._classes.sizes[name], self._given.quarantined
        for spare in sorted(self._given.spares - used - quarantined):
            if self._sizes[spare] == size:
                return spare
        if consumer not in self._sizes:
            return consumer
        taken = used | self._sizes.keys() | quarantined
        return next(ConsumerId(n) for n in count(1) if ConsumerId(n) not in taken)
