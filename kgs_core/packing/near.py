"""Partitions brought into their leaders' zones: a pass over what any algorithm has packed.

It lowers Rscore + weight x speed read across zones / C, step by step: a partition moves to a consumer in its leader's
zone, or is exchanged for one there; a whole share goes to a consumer that would be idle. Only what gains is done, so a
packing by which nothing can be gained stays as it is. The number of consumers, capacity and pinned partitions are
respected.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from typing import NamedTuple

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, grouped
from kgs_core.packing.basics.problem import PackingProblem
from kgs_core.packing.basics.zones import Zones
from kgs_core.packing.classes import Classes

_LEAST_GAIN = 1e-9
_MOST_LOOKED_AT = 20_000
"""Partitions looked at after which it is enough: with thousands, the last passes gain least."""
_TRIED = 16
"""Consumers of a zone with which an exchange is looked for: those that read least."""


class _Exchange(NamedTuple):
    """A partition that goes to `taker`, and one that comes back for it, if any; `gain` is in Rscore."""

    gain: float
    taker: ConsumerId
    back: TopicPartition | None


class _WholeShare:
    """Whole share of a consumer: how much of it is led where, and how much is at home where."""

    def __init__(self, partitions: Sequence[TopicPartition], problem: PackingProblem) -> None:
        self.partitions = partitions
        self._led: dict[str, float] = defaultdict(float)
        self._at_home: dict[ConsumerId, float] = defaultdict(float)
        for partition in partitions:
            if (zone := problem.zones.leaders.get(partition)) is not None:
                self._led[zone] += problem.speeds[partition]
            if (home := problem.home(partition)) is not None:
                self._at_home[home] += problem.speeds[partition]

    def gain(self, giver: ConsumerId, taker: ConsumerId, zones: Zones) -> float:
        """Gain in Rscore x C by handing it on."""
        nearer = self._far(giver, zones) - self._far(taker, zones)
        return zones.weight * nearer + self._at_home[taker] - self._at_home[giver]

    def _far(self, consumer: ConsumerId, zones: Zones) -> float:
        zone = zones.consumers.get(consumer)
        return 0.0 if zone is None else sum(speed for led, speed in self._led.items() if led != zone)


def near(packed: Assignment, problem: PackingProblem, classes: Classes | None = None) -> Assignment:
    """`packed`, with partitions nearer to their leaders where that is worth what it moves.

    Up to a weight of 1 nothing is moved for its zone's sake alone: what moves anyway, or has no consumer, goes near.

    Args:
        classes: of the consumers; None: all are alike.
    """
    if not problem.zones.weight:
        return packed
    bins = _Bins(packed, problem, classes or Classes({}, {}))
    while bins.looked_at < _MOST_LOOKED_AT and (bins.improve() or bins.hand_on()):
        pass
    return bins.assignment


class _Bins:
    def __init__(self, packed: Assignment, problem: PackingProblem, classes: Classes) -> None:
        self.assignment = dict(packed)
        self.looked_at = 0
        self._problem = problem
        self._zones = problem.zones
        self._classes = classes
        self._capacity_of = classes.capacity(problem.capacity)
        self._load: dict[ConsumerId, BytesPerSecond] = defaultdict(float)
        self._count: dict[ConsumerId, int] = defaultdict(int)
        # What may move, of each consumer by the zone of its leader, from slow to fast
        self._free: dict[ConsumerId, dict[str | None, list[tuple[BytesPerSecond, TopicPartition]]]] = {}
        for partition, consumer in sorted(packed.items()):
            self._put(partition, consumer)
        self._of_zone: dict[str, list[ConsumerId]] = defaultdict(list)
        for consumer in sorted(self._count):
            if (zone := self._zones.consumers.get(consumer)) is not None:
                self._of_zone[zone].append(consumer)

    def improve(self) -> bool:
        """Bring each partition nearer that can be, the fastest first; whether there was one."""
        far = [p for p, c in self.assignment.items() if p not in self._problem.pinned and self._zones.is_far(p, c)]
        has_changed = False
        self.looked_at += len(far)
        for partition in self._problem.decreasing(far):
            consumer = self.assignment[partition]
            if not self._zones.is_far(partition, consumer):
                continue  # exchanged meanwhile
            best = self._best(partition)
            if best is None or best.gain <= _LEAST_GAIN:
                continue
            has_changed = True
            self._move(partition, best.taker)
            if best.back is not None:
                self._move(best.back, consumer)
        return has_changed

    def hand_on(self) -> bool:
        """Give whole shares to running consumers without any, each the one that gains most; whether there was one."""
        problem, known = self._problem, self._zones.consumers
        pinned = {self.assignment[p] for p in problem.pinned}
        idle = ({*problem.current.values()} | problem.spares) - problem.quarantined - {*self.assignment.values()}
        shares = {c: _WholeShare(ps, problem) for c, ps in self._shares().items() if c not in pinned}
        has_changed = False
        for taker in sorted(idle & known.keys()):
            gains = {
                giver: share.gain(giver, taker, self._zones)
                for giver, share in shares.items()
                if self._is_as_good(taker, giver)
            }
            giver = max(gains, key=gains.__getitem__, default=taker)
            if gains.get(giver, 0.0) <= _LEAST_GAIN * problem.capacity:
                continue
            has_changed = True
            for partition in shares.pop(giver).partitions:
                self._move(partition, taker)
            if (zone := known.get(giver)) is not None:
                self._of_zone[zone].remove(giver)
            self._of_zone[known[taker]].append(taker)
        return has_changed

    def _is_as_good(self, taker: ConsumerId, giver: ConsumerId) -> bool:
        """Whether it is as large, and costs no more."""
        classes = self._classes
        return classes.share(taker) == classes.share(giver) and classes.price([taker]) <= classes.price([giver])

    def _shares(self) -> dict[ConsumerId, list[TopicPartition]]:
        return grouped((consumer, partition) for partition, consumer in self.assignment.items())

    def _best(self, partition: TopicPartition) -> _Exchange | None:
        """What brings it near: the move that fits most tightly, else an exchange."""
        giver, speed = self.assignment[partition], self._problem.speeds[partition]
        takers = self._of_zone.get(self._zones.leaders[partition], [])
        if self._count[giver] > 1:  # as many consumers read as were packed
            fitting = [c for c in takers if self._load[c] + speed <= self._capacity_of(c)]
            if fitting:
                taker = max(fitting, key=lambda c: (self._gain(partition, c), self._load[c]))
                return _Exchange(self._gain(partition, taker), taker, None)
        best = None
        for taker in nsmallest(_TRIED, takers, key=lambda c: (self._load[c], c)):
            for exchange in self._exchanges(partition, taker):
                if best is None or exchange.gain > best.gain:
                    best = exchange
            if best is not None and best.gain >= self._gain(partition, best.taker):
                break  # what comes back loses nothing
        return best

    def _exchanges(self, partition: TopicPartition, taker: ConsumerId) -> Iterator[_Exchange]:
        """For the slowest and the fastest partition that fits, of each zone that leads some there."""
        giver, speed = self.assignment[partition], self._problem.speeds[partition]
        least = self._load[taker] + speed - max(self._capacity_of(taker), self._load[taker])
        most = max(self._capacity_of(giver), self._load[giver]) - self._load[giver] + speed
        gain = self._gain(partition, taker)
        for each in self._free.get(taker, {}).values():
            first = bisect_left(each, least, key=lambda one: one[0])
            end = bisect_right(each, most, key=lambda one: one[0])
            for place in {first, end - 1} if first < end else ():
                back = each[place][1]
                yield _Exchange(gain + self._gain(back, giver), taker, back)

    def _gain(self, partition: TopicPartition, taker: ConsumerId) -> float:
        giver, home = self.assignment[partition], self._problem.home(partition)
        moves = 0 if home is None else (taker != home) - (giver != home)
        nearer = self._zones.is_far(partition, giver) - self._zones.is_far(partition, taker)
        return (self._zones.weight * nearer - moves) * self._problem.speeds[partition] / self._problem.capacity

    def _put(self, partition: TopicPartition, consumer: ConsumerId) -> None:
        self._load[consumer] += self._problem.speeds[partition]
        self._count[consumer] += 1
        if partition not in self._problem.pinned:
            groups = self._free.setdefault(consumer, {})
            zone = self._zones.leaders.get(partition)
            insort(groups.setdefault(zone, []), (self._problem.speeds[partition], partition))

    def _move(self, partition: TopicPartition, taker: ConsumerId) -> None:
        giver, speed = self.assignment[partition], self._problem.speeds[partition]
        self._load[giver] -= speed
        self._count[giver] -= 1
        group = self._free[giver][self._zones.leaders.get(partition)]
        del group[bisect_left(group, (speed, partition))]
        self.assignment[partition] = taker
        self._put(partition, taker)
