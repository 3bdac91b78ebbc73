"""The search: fewest consumers and least moved speed, weighed against each other, with a look at the next step.

What is weighed and why: docs/packing.md. What is computed many times is in `annealing`, compiled.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgs_core.model import Assignment, ConsumerId, TopicPartition
from kgs_core.packing.any_fit.classic import best_fit_decreasing
from kgs_core.packing.any_fit.sticky_eviction import sticky_eviction
from kgs_core.packing.basics.problem import PackingProblem, RandomSource
from kgs_core.packing.basics.problem_arrays import NOBODY, ProblemArrays, as_arrays, distinct
from kgs_core.packing.basics.spread import spread
from kgs_core.packing.search.parts import LARGE, SearchStep, annealed
from kgs_core.packing.search.relabel import relabelled
from kgs_core.packing.search.state import HOMELESS, Floats, Ints, SearchWeights

Flags = NDArray[np.bool_]

NO_BOUND = 1 << 40
_EPSILON = 1e-9
_EVENNESS = 0.1
_STAY = 1e6


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
    arrays = as_arrays(problem)
    moving = ~arrays.pinned & (arrays.speeds > 0)
    found = np.empty(0, np.int64)
    step = _step(problem, arrays, moving)
    if moving.any():
        start = _start(problem, arrays, random, large=len(step.speed) >= LARGE)
        if start.problem is not problem:
            problem = start.problem
            step = _step(problem, arrays, moving)
        found = _searched(step, start, moving, random)
    numbers = _numbered(found, step, moving, problem, arrays)
    return spread(dict(zip(arrays.partitions, map(ConsumerId, numbers.tolist()), strict=True)), problem)


def _step(problem: PackingProblem, arrays: ProblemArrays, moving: Flags) -> SearchStep:
    """The problem in units of C; rounded, so that the same load in another unit is packed the same."""
    speeds = np.round(arrays.speeds / problem.capacity, 12)
    consumers = distinct(arrays.current[arrays.current != NOBODY])
    place = np.where(arrays.current == NOBODY, HOMELESS, np.searchsorted(consumers, arrays.current))
    pinned = place[arrays.pinned]
    held = np.zeros(len(consumers), np.bool_)
    held[pinned] = True
    still = arrays.speeds[moving]
    return SearchStep(
        consumers=consumers,
        speed=speeds[moving],
        home=place[moving],
        drift=_of_moving(problem.drift, np.zeros(len(still)), problem, arrays, moving),
        variance=_of_moving(problem.variation, still / 10, problem, arrays, moving) ** 2,
        fixed=np.bincount(pinned, speeds[arrays.pinned], minlength=len(consumers)).astype(np.float64),
        held=held,
    )


def _of_moving(
    known: Mapping[TopicPartition, float],
    otherwise: Floats,
    problem: PackingProblem,
    arrays: ProblemArrays,
    moving: Flags,
) -> Floats:
    """What is known of the partitions that move, in units of C."""
    values = otherwise
    if known:
        names = (p for p, moves in zip(arrays.partitions, moving.tolist(), strict=True) if moves)
        values = np.array([known.get(p, other) for p, other in zip(names, otherwise.tolist(), strict=True)])
    rounded: Floats = np.round(values / problem.capacity, 12)
    return rounded


def _start(problem: PackingProblem, arrays: ProblemArrays, random: RandomSource, *, large: bool) -> _Start:
    whole = replace(problem, min_consumers=0, max_consumers=None)
    most = max(problem.max_consumers or NO_BOUND, _count(arrays.current[arrays.pinned]))
    if large and problem.consumer_weight is not None:  # there is no time to come from afar
        kept = arrays.consumers_of(sticky_eviction(whole, random))
        if _count(kept) <= most:
            return _Start(problem, kept, _count(kept), settled=True)
    packed = arrays.consumers_of(best_fit_decreasing(whole, random))
    least = _count(packed)
    if least <= most:
        return _Start(problem, packed, least, settled=False)
    stretched, packed = _stretched(whole, arrays, most, random)
    # every consumer is needed, so that there is none to be saved
    problem = replace(problem, capacity=stretched, consumer_weight=None, min_consumers=problem.max_consumers or 0)
    return _Start(problem, packed, most, settled=False)


def _stretched(whole: PackingProblem, arrays: ProblemArrays, most: int, random: RandomSource) -> tuple[float, Ints]:
    """The least capacity, up to a hundredth, at which BFD needs no more than `most` consumers, and what it packs."""

    def packed(capacity: float) -> Ints:
        return arrays.consumers_of(best_fit_decreasing(replace(whole, capacity=capacity), random))

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


def _count(numbers: Ints) -> int:
    return len(distinct(numbers))


def _searched(step: SearchStep, start: _Start, moving: Flags, random: RandomSource) -> Ints:
    """A bin for each partition that moves: < K that consumer, else a new one."""
    consumer_weight = start.problem.consumer_weight
    fewest = consumer_weight is None
    most = start.least if fewest else start.problem.max_consumers or NO_BOUND
    bins = _places(start.numbers, step)
    begin = bins[moving] if start.settled else _relabelled(bins[moving], step)
    terms = SearchWeights(
        float(consumer_weight or 0.0), _outlook(step) / (2 if fewest else 1), _EVENNESS, most, fewest or start.settled
    )
    found = _bounded(step, begin, terms, random)
    if _in_use(found, step) > most:  # overload was left, and repaired with more consumers
        found = _bounded(step, begin, terms._replace(strict=True), random)
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
    """`found` under the numbers of consumers, so that most speed stays; what is pinned to a consumer holds its bin."""
    pinned = np.flatnonzero(step.held)
    labels = relabelled(
        np.concatenate([found, pinned]),
        np.concatenate([step.home, pinned]),
        np.concatenate([step.speed, np.full(len(pinned), _STAY)]),
    )
    new = distinct(found[labels[found] < 0])
    labels[new] = len(step.consumers) + np.arange(len(new))
    return labels[found]


def _repaired(found: Ints, step: SearchStep) -> Ints:
    """`found`, without overload: the least partition that ends it goes where it fits most tightly, else alone."""
    size = max(int(found.max()) + 1, len(step.consumers))
    load = np.bincount(found, step.speed, minlength=size).astype(np.float64)
    load[: len(step.fixed)] += step.fixed
    number: Ints = np.bincount(found, minlength=size) + np.pad(step.held, (0, size - len(step.held)))
    for b in np.flatnonzero((load > 1 + _EPSILON) & (number > 1)).tolist():
        while load[b] > 1 + _EPSILON and number[b] > 1 and (found == b).any():
            inside = np.flatnonzero(found == b)
            enough = inside[step.speed[inside] >= load[b] - 1 - _EPSILON]
            pick = enough[np.argmin(step.speed[enough])] if len(enough) else inside[np.argmax(step.speed[inside])]
            fits = np.flatnonzero((number > 0) & (load + step.speed[pick] <= 1 + _EPSILON))
            fits = fits[fits != b]
            home = step.home[pick]
            if len(fits):
                target = home if home in fits else fits[np.argmax(load[fits])]
            else:
                target = home if home >= 0 and number[home] == 0 else len(load)
                if target == len(load):
                    load, number = np.append(load, 0.0), np.append(number, 0)
            for bin_, sign in ((b, -1), (int(target), 1)):
                load[bin_] += sign * step.speed[pick]
                number[bin_] += sign
            found[pick] = target
    return found


def _numbered(found: Ints, step: SearchStep, moving: Flags, problem: PackingProblem, arrays: ProblemArrays) -> Ints:
    """Numbers for the bins, and a place for the partitions that cost nothing wherever they are.

    A new bin is a joined spare, else a consumer that has lost all it had, else the lowest free number.
    """
    used = distinct(np.concatenate([step.consumers[found[found < len(step.consumers)]], step.consumers[step.held]]))
    spares = sorted(problem.spares - problem.quarantined - set(used.tolist()))
    emptied = np.setdiff1d(step.consumers, [*used, *spares]).tolist()
    taken = {*used.tolist(), *spares, *emptied, *problem.quarantined}
    fresh = iter([*spares, *emptied])
    lowest = (n for n in count(1) if n not in taken)
    bins, first = np.unique(found, return_index=True)
    new = bins[np.argsort(first)]
    names = np.append(step.consumers, np.zeros(int(found.max(initial=0)) + 1, np.int64))
    for b in new[new >= len(step.consumers)].tolist():
        names[b] = next(fresh, None) or next(lowest)
    numbers = np.where(arrays.pinned, arrays.current, NOBODY)
    numbers[moving] = names[found]
    taken_by = np.flatnonzero(numbers)
    consumers, place = np.unique(numbers[taken_by], return_inverse=True)
    load = dict(zip(consumers.tolist(), np.bincount(place, arrays.speeds[taken_by]).tolist(), strict=True))
    least = min(((total, c) for c, total in load.items()), default=None)
    for i in np.flatnonzero(numbers == NOBODY).tolist():
        home = int(arrays.current[i])
        if home == NOBODY or not (load.get(home, problem.capacity + 1) <= problem.capacity if load else True):
            # who reads one that is too fast reads no other
            full = problem.max_consumers is not None and len(load) >= problem.max_consumers
            home = least[1] if least and (full or least[0] <= problem.capacity) else next(fresh, None) or next(lowest)
        numbers[i] = home
        if home not in load:
            load[home] = 0.0
            least = min(least or (0.0, home), (0.0, home))
    return numbers
