"""Sticky eviction: everything stays, what is too much goes, and a consumer is freed when all it has fits elsewhere."""

from collections.abc import Iterable, Sequence
from operator import itemgetter

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition
from kgs_core.packing.any_fit.fits import BestFit
from kgs_core.packing.any_fit.open_bins import OpenConsumers
from kgs_core.packing.basics.problem import PackingProblem, RandomSource, sum_of

LOOKS = 2_000
"""Subsets that are looked at, at most, for the least that ends an overload; then the best one found is taken."""


def sticky_eviction(problem: PackingProblem, _random: RandomSource) -> Assignment:
    """Moves little and is fast: no consumer is touched that need not be.

    An overloaded consumer gives up the subset of least speed that ends the overload. What has no consumer then goes,
    from fast to slow, where it fits most tightly, else to a new one. Last, consumers are freed from the least loaded
    on, if what they have fits elsewhere and is not more than `consumer_weight` consumers' capacity.
    """
    order = {p: place for place, p in enumerate(problem.decreasing(problem.speeds))}
    kept, homeless = _kept(problem, order)
    placed = _Placed(kept, problem)
    rest = [p for p in problem.decreasing(homeless) if not placed.fit(p)]
    placed.free_consumers()
    opened = OpenConsumers(problem, BestFit())
    for consumer in sorted(placed.groups):
        free = [p for p in placed.groups[consumer] if p not in problem.pinned]
        rest += opened.assign_group(consumer, sorted(free, key=order.__getitem__))  # rounding: in another order
    return opened.assign_all(problem.decreasing(rest))


def _kept(
    problem: PackingProblem, order: Iterable[TopicPartition]
) -> tuple[dict[ConsumerId, list[TopicPartition]], list[TopicPartition]]:
    """What each consumer keeps, and what has none; `order`: all, from fast to slow."""
    groups: dict[ConsumerId, list[TopicPartition]] = {}
    homeless = []
    for partition in order:
        home = problem.home(partition)
        if home is None:
            homeless.append(partition)
        else:
            groups.setdefault(home, []).append(partition)
    for consumer, partitions in groups.items():
        over = sum_of(problem.speeds[p] for p in partitions) - problem.capacity_of(consumer)
        free = [p for p in partitions if p not in problem.pinned and problem.speeds[p] > 0]
        if over > 0 and (len(partitions) > 1 or not problem.may_begin(consumer, partitions[0])):
            gone = set(least_evicted([problem.speeds[p] for p in free], over))
            leaving = {free[i] for i in gone}
            groups[consumer] = [p for p in partitions if p not in leaving]
            homeless += leaving
    return {consumer: partitions for consumer, partitions in groups.items() if partitions}, homeless


def least_evicted(speeds: Sequence[BytesPerSecond], over: BytesPerSecond) -> list[int]:
    """Places of the subset of least sum among those of at least `over`; all, if none is enough.

    Exact where at most `LOOKS` subsets have to be looked at, which bounds cut short.

    Args:
        speeds: from fast to slow.
        over: what must go, > 0.
    """
    best, least, looks = list(range(len(speeds))), sum_of(speeds), 0
    if least < over:
        return best
    after = [0.0] * (len(speeds) + 1)
    for i in range(len(speeds) - 1, -1, -1):
        after[i] = after[i + 1] + speeds[i]
    stack: list[tuple[int, float, list[int]]] = [(0, 0.0, [])]
    while stack and looks < LOOKS:
        looks += 1
        i, total, chosen = stack.pop()
        if total >= over:
            if total < least:
                best, least = chosen, total
        elif i < len(speeds) and total + after[i] >= over:
            stack.append((i + 1, total, chosen))
            if total + speeds[i] < least:
                stack.append((i + 1, total + speeds[i], [*chosen, i]))
    return best


class _Placed:
    """The consumers while partitions are placed and consumers freed."""

    def __init__(self, groups: dict[ConsumerId, list[TopicPartition]], problem: PackingProblem) -> None:
        self.groups = groups
        self._problem = problem
        self._loads = {c: sum_of(problem.speeds[p] for p in held) for c, held in groups.items()}
        self._fit = BestFit()
        self._empty = {c: problem.capacity - problem.capacity_of(c) for c in groups}  # as `OpenConsumers` has it
        filled = {consumer: load + self._empty[consumer] for consumer, load in self._loads.items()}
        for consumer, load in sorted(filled.items(), key=itemgetter(1)):  # each is put last, which is quick
            self._fit.put(consumer, None, load)

    def fit(self, partition: TopicPartition) -> bool:
        """Place it where it fits most tightly; False: nowhere."""
        target = self._fit.choose(self._problem.capacity - self._problem.speeds[partition])
        if target is None:
            return False
        self._put(target, self._problem.speeds[partition])
        self.groups[target].append(partition)
        return True

    def free_consumers(self) -> None:
        """Free one after the other, from the least loaded on, until one cannot be."""
        problem = self._problem
        consumer_weight = problem.consumer_weight
        pinned = {problem.current[p] for p in problem.pinned}
        for consumer in sorted(self.groups, key=lambda c: (self._loads[c], c)):
            if len(self.groups) <= max(1, problem.min_consumers) or consumer in pinned:
                continue
            worth = None if consumer_weight is None else consumer_weight * problem.price_of(consumer)
            if worth is not None and self._loads[consumer] > worth * problem.capacity:
                continue
            if not self._free(consumer):
                return

    def _free(self, consumer: ConsumerId) -> bool:
        """Whether all that it has fits elsewhere; if not, nothing is to be placed or freed after it."""
        self._fit.remove(consumer, self._loads.pop(consumer) + self._empty[consumer])
        moved: list[tuple[TopicPartition, ConsumerId]] = []
        for partition in self._problem.decreasing(self.groups[consumer]):
            target = self._fit.choose(self._problem.capacity - self._problem.speeds[partition])
            if target is None:
                return False
            self._put(target, self._problem.speeds[partition])
            moved.append((partition, target))
        del self.groups[consumer]
        for partition, target in moved:
            self.groups[target].append(partition)
        return True

    def _put(self, target: ConsumerId, speed: BytesPerSecond) -> None:
        before, empty = self._loads[target], self._empty[target]
        self._loads[target] = before + speed
        self._fit.put(target, before + empty, before + speed + empty)
