"""The search: fewest consumers and least moved speed, weighed against each other, with a look at the next step.

What is weighed and why: docs/packing.md. What is computed many times is in `annealing`, compiled.
"""

import math
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import numpy as np

from kgs_core.model import Assignment, ConsumerId
from kgs_core.packing.any_fit.classic import best_fit_decreasing
from kgs_core.packing.any_fit.sticky_eviction import sticky_eviction
from kgs_core.packing.basics.problem import PackingProblem, RandomSource
from kgs_core.packing.basics.spread import spread
from kgs_core.packing.search.dissolve import dissolved
from kgs_core.packing.search.parts import LARGE, NOBODY, SearchStep, annealed
from kgs_core.packing.search.relabel import relabelled
from kgs_core.packing.search.state import HOMELESS, Floats, Ints, SearchWeights, distinct

NO_BOUND = 1 << 40
_EPSILON = 1e-9
_EVENNESS = 0.1
_STAY = 1e6
_NEW = -1
_OTHERS = 20.0
"""So many times what a partition has done by itself weighs what all have done: one change of its own tells little."""


class _Start(NamedTuple):
    """Start of the search.

    Attributes:
        problem: the one to search; of greater capacity than the one given, where `max_consumers` binds.
        numbers: consumer of every partition.
        least: consumers that are enough, as far as it is known.
        settled: whether consumers have their own numbers, else bins are yet to be relabelled.
    """

    problem: PackingProblem
    numbers: Ints
    least: int
    settled: bool


def search(problem: PackingProblem, random: RandomSource) -> Assignment:
    """Simulated annealing from the best packing without regard to who reads what; with many, from sticky eviction.

    With `consumer_weight` None never more consumers than BFD. Where `max_consumers` binds, all are overloaded alike, by
    as little as BFD manages.

    References:
        Kirkpatrick, Gelatt and Vecchi 1983, "Optimization by simulated annealing". The look-ahead is our own.
    """
    if not problem.speeds:
        return {}
    found = np.empty(0, np.int64)
    step = _step(problem)
    if step.moving.any():
        start = _start(problem, step, random)
        if start.problem is not problem:
            problem = start.problem
            step = _step(problem)
        found = _searched(step, start, random)
    numbers = _numbered(found, step, problem)
    return spread(dict(zip(step.partitions, map(ConsumerId, numbers.tolist()), strict=True)), problem)


def _step(problem: PackingProblem) -> SearchStep:
    """The problem in units of C; rounded, so that the same load in another unit is packed the same."""
    partitions = sorted(problem.speeds)
    count = len(partitions)
    bytes_per_s = np.fromiter(map(problem.speeds.__getitem__, partitions), np.float64, count)
    current = np.array([problem.current.get(p, NOBODY) for p in partitions], np.int64)
    if problem.quarantined:
        current[np.isin(current, list(problem.quarantined))] = NOBODY
    pinned = np.fromiter(map(problem.pinned.__contains__, partitions), np.bool_, count)
    moving = ~pinned & (bytes_per_s > 0)
    speeds = np.round(bytes_per_s / problem.capacity, 12)
    consumers = distinct(current[current != NOBODY])
    place = np.where(current == NOBODY, HOMELESS, np.searchsorted(consumers, current))
    held = np.zeros(len(consumers), np.bool_)
    held[place[pinned]] = True
    earlier = np.array([problem.earlier.get(p, 0.0) for p in partitions])
    return SearchStep(
        partitions=partitions,
        bytes_per_s=bytes_per_s,
        current=current,
        pinned=pinned,
        moving=moving,
        consumers=consumers,
        speed=speeds[moving],
        home=place[moving],
        variance=np.round(_deviation(bytes_per_s, earlier)[moving] / problem.capacity, 12) ** 2,
        fixed=np.bincount(place[pinned], speeds[pinned], minlength=len(consumers)).astype(np.float64),
        held=held,
        empty=np.array([1.0 - problem.capacity_of(ConsumerId(c)) / problem.capacity for c in consumers.tolist()]),
        price=np.array([problem.price_of(ConsumerId(c)) for c in consumers.tolist()]),
    )


def _deviation(speeds: Floats, earlier: Floats) -> Floats:
    """Standard deviation of the change of each speed until the next packing, but no less than a tenth of the speed.

    By its change since the last packing, mixed with the mean of all. Changes from or to a standstill are left out: they
    say more of the bound at 0 than of the partition.
    """
    has_changed = (earlier > 0) & (speeds > 0)
    squares = (speeds - earlier) ** 2
    if not has_changed.any():
        return speeds / 10
    common = math.fsum(squares[has_changed]) / has_changed.sum()
    own = np.where(has_changed, (squares + _OTHERS * common) / (1 + _OTHERS), common)
    deviation: Floats = np.maximum(np.sqrt(own), speeds / 10)
    return deviation


def _start(problem: PackingProblem, step: SearchStep, random: RandomSource) -> _Start:
    whole = replace(problem, min_consumers=0, max_consumers=None)
    most = max(problem.max_consumers or NO_BOUND, _count(step.current[step.pinned]))
    if len(step.speed) >= LARGE and problem.consumer_weight is not None:  # there is no time to come from afar
        kept = step.consumers_of(sticky_eviction(whole, random))
        if _count(kept) <= most:
            return _Start(problem, kept, _count(kept), settled=True)
    packed = step.consumers_of(best_fit_decreasing(whole, random))
    least = _count(packed)
    if least <= most:
        return _Start(problem, packed, least, settled=False)
    stretched, packed = _stretched(whole, step, most, random)
    # every consumer is needed, so that there is none to be saved
    problem = replace(_of_capacity(problem, stretched), consumer_weight=None, min_consumers=problem.max_consumers or 0)
    return _Start(problem, packed, most, settled=False)


def _stretched(whole: PackingProblem, step: SearchStep, most: int, random: RandomSource) -> tuple[float, Ints]:
    """The least capacity, up to a hundredth, at which BFD needs no more than `most` consumers, and what it packs."""

    def packed(capacity: float) -> Ints:
        return step.consumers_of(best_fit_decreasing(_of_capacity(whole, capacity), random))

    low, high = whole.capacity, whole.capacity * 2
    while _count(packed(high)) > most:
        low, high = high, high * 2
    while high > low * 1.01:
        middle = (low + high) / 2
        if _count(packed(middle)) <= most:
            high = middle
        else:
            low = middle
    return high, packed(high)


def _of_capacity(problem: PackingProblem, capacity: float) -> PackingProblem:
    """`problem`, with all consumers stretched so that a new one has this capacity."""
    more = capacity / problem.capacity
    unlike = {consumer: size._replace(capacity=size.capacity * more) for consumer, size in problem.unlike.items()}
    return replace(problem, capacity=capacity, unlike=unlike)


def _count(numbers: Ints) -> int:
    return len(distinct(numbers))


def _searched(step: SearchStep, start: _Start, random: RandomSource) -> Ints:
    """A bin for each partition that moves: < K that consumer, else a new one."""
    consumer_weight = start.problem.consumer_weight
    fewest = consumer_weight is None
    most = start.least if fewest else start.problem.max_consumers or NO_BOUND
    bins = _places(start.numbers, step)
    begin = bins[step.moving] if start.settled else _relabelled(bins[step.moving], step)
    terms = SearchWeights(
        float(consumer_weight or 0.0), _outlook(step) / (2 if fewest else 1), _EVENNESS, most, fewest or start.settled
    )
    found = _bounded(step, begin, terms, random)
    if _in_use(found, step) > most:  # overload was left, and repaired with more consumers
        found = _bounded(step, begin, terms._replace(strict=True), random)
    if not fewest:
        found = dissolved(found, step, terms.price)
    return _relabelled(found, step) if _in_use(found, step) <= most else begin


def _places(numbers: Ints, step: SearchStep) -> Ints:
    """Bins for numbers of consumers: < K for those that there are."""
    place = np.searchsorted(step.consumers, numbers)
    known = np.append(step.consumers, NOBODY)[place] == numbers
    place[~known] = len(step.consumers) + np.unique(numbers[~known], return_inverse=True)[1]
    return place


def _bounded(step: SearchStep, begin: Ints, terms: SearchWeights, random: RandomSource) -> Ints:
    """Searched for once; consumers with nothing but what is pinned count as well."""
    idle = _in_use(begin, step) - _count(begin)
    seed = int(random.random() * (1 << 30))
    return _repaired(annealed(step, begin, terms._replace(most=max(1, terms.most - idle)), seed), step)


def _in_use(found: Ints, step: SearchStep) -> int:
    return _count(np.concatenate([found, np.flatnonzero(step.held)]))


def _outlook(step: SearchStep) -> float:
    """Weight of the look-ahead; less where speeds jump, since the step after the next is not foreseen at all."""
    deviation = float(np.sqrt(step.variance.mean()))
    return min(2.0, max(1.0, 2.2 - 8.0 * deviation))


def _relabelled(found: Ints, step: SearchStep) -> Ints:
    """`found` under the numbers of consumers, so that most speed stays; what is pinned to a consumer holds its bin.

    A bin of a consumer that is unlike a new one becomes that of one like it.
    """
    pinned = np.flatnonzero(step.held)
    kind = np.full(max(int(found.max()) + 1, len(step.consumers)), _NEW)
    kinds: dict[tuple[float, float], int] = {}
    for c in np.flatnonzero((step.empty != 0.0) | (step.price != 1.0)).tolist():
        kind[c] = kinds.setdefault((float(step.empty[c]), float(step.price[c])), len(kinds))
    labels = relabelled(
        np.concatenate([found, pinned]),
        np.concatenate([np.where(kind[step.home] == kind[found], step.home, HOMELESS), pinned]),
        np.concatenate([step.speed, np.full(len(pinned), _STAY)]),
    )
    for b in distinct(found[(labels[found] < 0) & (kind[found] != _NEW)]).tolist():
        alike = np.flatnonzero(kind[: len(step.consumers)] == kind[b])
        labels[b] = alike[~np.isin(alike, labels)][0]  # there are as many of these bins as consumers, at most
    new = distinct(found[labels[found] < 0])
    labels[new] = len(step.consumers) + np.arange(len(new))
    return labels[found]


def _repaired(found: Ints, step: SearchStep) -> Ints:
    """`found`, without overload: the least partition that ends it goes where it fits most tightly, else alone."""
    load = step.loads(found)
    size = len(load)
    number: Ints = np.bincount(found, minlength=size) + np.pad(step.held, (0, size - len(step.held)))
    least = np.pad(np.where(step.empty > 0, 0, 1), (0, size - len(step.held)), constant_values=1)
    for b in np.flatnonzero((load > 1 + _EPSILON) & (number > least)).tolist():
        while load[b] > 1 + _EPSILON and number[b] > least[b] and (found == b).any():
            inside = np.flatnonzero(found == b)
            enough = inside[step.speed[inside] >= load[b] - 1 - _EPSILON]
            pick = enough[np.argmin(step.speed[enough])] if len(enough) else inside[np.argmax(step.speed[inside])]
            fits = np.flatnonzero((number > 0) & (load + step.speed[pick] <= 1 + _EPSILON))
            fits = fits[fits != b]
            home = step.home[pick]
            if len(fits):
                target = home if home in fits else fits[np.argmax(load[fits])]
            else:
                is_free = home >= 0 and number[home] == 0 and load[home] + step.speed[pick] <= 1 + _EPSILON
                target = home if is_free else len(load)
                if target == len(load):
                    load, number = np.append(load, 0.0), np.append(number, 0)
            for bin_, sign in ((b, -1), (int(target), 1)):
                load[bin_] += sign * step.speed[pick]
                number[bin_] += sign
            found[pick] = target
    return found


def _numbered(found: Ints, step: SearchStep, problem: PackingProblem) -> Ints:
    """Numbers for the bins, and a place for the partitions that cost nothing wherever they are.

    A new bin is a joined spare, else a consumer that has lost all it had, else the lowest free number.
    """
    used = distinct(np.concatenate([step.consumers[found[found < len(step.consumers)]], step.consumers[step.held]]))
    not_new = problem.not_new
    spares = sorted(problem.spares - not_new - set(used.tolist()))
    emptied = np.setdiff1d(step.consumers, [*used, *spares, *not_new]).tolist()
    taken = {*used.tolist(), *spares, *emptied, *not_new}
    fresh = iter([*spares, *emptied])
    lowest = (n for n in count(1) if n not in taken)
    bins, first = np.unique(found, return_index=True)
    new = bins[np.argsort(first)]
    names = np.append(step.consumers, np.zeros(int(found.max(initial=0)) + 1, np.int64))
    for b in new[new >= len(step.consumers)].tolist():
        names[b] = next(fresh, None) or next(lowest)
    numbers = np.where(step.pinned, step.current, NOBODY)
    numbers[step.moving] = names[found]
    taken_by = np.flatnonzero(numbers)
    consumers, place = np.unique(numbers[taken_by], return_inverse=True)
    load = dict(zip(consumers.tolist(), np.bincount(place, step.bytes_per_s[taken_by]).tolist(), strict=True))
    least = min(((total, c) for c, total in load.items()), default=None)
    for i in np.flatnonzero(numbers == NOBODY).tolist():
        home = int(step.current[i])
        limit = problem.capacity_of(ConsumerId(home))
        if home == NOBODY or not (load.get(home, limit + 1) <= limit if load else True):
            # who reads one that is too fast reads no other
            full = problem.max_consumers is not None and len(load) >= problem.max_consumers
            has_room = least and (full or least[0] <= problem.capacity_of(ConsumerId(least[1])))
            home = least[1] if least and has_room else next(fresh, None) or next(lowest)
        numbers[i] = home
        if home not in load:
            load[home] = 0.0
            least = min(least or (0.0, home), (0.0, home))
    return numbers
