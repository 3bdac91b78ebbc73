"""The search: fewest consumers and least moved speed, weighed against each other, with a look at the next step.

What is weighed and why: docs/packing.md. What is computed many times is in `annealing`, compiled.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgs_core.model import Assignment, ConsumerId, TopicPartition
from kgs_core.packing.annealing import anneal
from kgs_core.packing.annealing_state import ELSEWHERE, HOMELESS, Bins, Items, Terms, new_work
from kgs_core.packing.any_fit import best_fit_decreasing
from kgs_core.packing.keep_and_shed import keep_and_shed
from kgs_core.packing.problem import PackingProblem, RandomSource
from kgs_core.packing.relabelling import relabelled
from kgs_core.packing.spread import spread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BUDGET = 500_000
"""Operations of one search."""
BUDGET_SMALL = 5_000
"""For each partition of a small group, whose search then ends earlier."""
BUDGET_EACH = 120
"""Operations for each partition of a large group."""
LARGE = 2_000
"""From so many partitions on, parts of the group are searched one after the other."""
PART = 100
"""Consumers of a part."""
ROUNDS = 2
NO_BOUND = 1 << 40
_EPSILON = 1e-9
_EVENNESS = 0.1
_STAY = 1e6


@dataclass(frozen=True, slots=True)
class _Step:
    """A packing problem as arrays: partitions 0 ... P - 1, consumers 0 ... K - 1, speeds in units of C."""

    partitions: Sequence[TopicPartition]
    consumers: Sequence[ConsumerId]
    speed: Floats
    home: Ints
    variance: Floats
    fixed: Floats


def search(problem: PackingProblem, random: RandomSource) -> Assignment:
    """Simulated annealing from the best packing without regard to who reads what, and from who reads what.

    With `consumer_worth` None never more consumers than BFD. Where `max_consumers` binds, all are overloaded alike, by
    as little as BFD manages.

    References:
        Kirkpatrick, Gelatt and Vecchi 1983, "Optimization by simulated annealing". The look-ahead is our own.
    """
    packed = best_fit_decreasing(replace(problem, min_consumers=0, max_consumers=None), random)
    least = len(set(packed.values()))
    most = problem.max_consumers
    if most is not None and least > max(most, len({problem.current[p] for p in problem.pinned})):
        problem, packed = _stretched(problem, packed, random)
        least = most
    step = _step(problem)
    found = _searched(step, problem, packed, least, random) if len(step.speed) else step.home
    return spread(_named(found, step, problem), problem)


def _step(problem: PackingProblem) -> _Step:
    moving = [p for p in problem.free_partitions() if problem.speeds[p] > 0]
    homes = {p: home for p in problem.speeds if (home := problem.home(p)) is not None}
    consumers = sorted(set(homes.values()))
    place = {consumer: i for i, consumer in enumerate(consumers)}
    fixed = np.zeros(len(consumers))
    for p in problem.pinned:
        fixed[place[homes[p]]] += problem.speeds[p] / problem.capacity
    return _Step(
        partitions=moving,
        consumers=consumers,
        speed=_in_units([problem.speeds[p] for p in moving], problem.capacity),
        home=np.array([place[homes[p]] if p in homes else -1 for p in moving], np.int64),
        variance=_in_units([problem.variation.get(p, problem.speeds[p] / 10) for p in moving], problem.capacity) ** 2,
        fixed=fixed,
    )


def _in_units(values: list[float], capacity: float) -> Floats:
    """In units of C, rounded, so that the same load in another unit is packed the same."""
    return np.round(np.array(values) / capacity, 12)


def _searched(step: _Step, problem: PackingProblem, packed: Assignment, least: int, random: RandomSource) -> Ints:
    """A bin for each partition: < K that consumer, else a new one."""
    fewest = problem.consumer_worth is None
    most = problem.max_consumers or NO_BOUND
    if fewest:
        most = least
    large = len(step.speed) >= LARGE
    if large and not fewest:
        packed = keep_and_shed(replace(problem, min_consumers=0), random)  # there is no time to come from afar
    start = _start(step, problem, packed)
    terms = Terms(
        problem.consumer_worth or 0.0, _outlook(step) / (2 if fewest else 1), _EVENNESS, most, fewest or large
    )
    found = _bounded(step, start, terms, random)
    if len(_used(found, step)) > most:  # overload was left, and repaired with more consumers
        found = _bounded(step, start, terms._replace(strict=True), random)
    return _exactly_relabelled(found, step) if len(_used(found, step)) <= most else start


def _bounded(step: _Step, start: Ints, terms: Terms, random: RandomSource) -> Ints:
    """Searched for once; consumers with nothing but pinned partitions count as well."""
    idle = len(set(np.flatnonzero(step.fixed).tolist()) - set(start.tolist()))
    seed = int(random.random() * (1 << 30))
    return _repaired(_annealed(step, start, terms._replace(most=max(1, terms.most - idle)), seed), step)


def _used(found: Ints, step: _Step) -> set[int]:
    return {*found.tolist(), *np.flatnonzero(step.fixed).tolist()}


def _outlook(step: _Step) -> float:
    """Weight of the look-ahead; less where speeds jump, since the step after the next is not foreseen at all."""
    deviation = float(np.sqrt(step.variance.mean()))
    return min(2.0, max(1.0, 2.2 - 8.0 * deviation))


def _start(step: _Step, problem: PackingProblem, packed: Assignment) -> Ints:
    """The packing without regard to who reads what, relabelled."""
    names = {name: i for i, name in enumerate(sorted(set(packed.values())))}
    bins = np.array([names[packed[p]] for p in step.partitions], np.int64)
    pinned = sorted({problem.current[p] for p in problem.pinned})
    own = np.array([names[c] for c in pinned], np.int64)
    place = {consumer: i for i, consumer in enumerate(step.consumers)}
    at = np.array([place[c] for c in pinned], np.int64)
    return _relabelled(bins, own, at, step)


def _relabelled(bins: Ints, own: Ints, at: Ints, step: _Step) -> Ints:
    """`bins` under the numbers of consumers, so that most speed stays; bin `own[i]` has what is pinned to `at[i]`."""
    labels = relabelled(
        np.concatenate([bins, own]),
        np.concatenate([step.home, at]),
        np.concatenate([step.speed, np.full(len(own), _STAY)]),
    )
    new = count(len(step.consumers))
    return np.array([labels[b] if b in labels else labels.setdefault(b, next(new)) for b in bins.tolist()], np.int64)


def _annealed(step: _Step, start: Ints, terms: Terms, seed: int) -> Ints:
    found = start.copy()
    size = len(step.speed)
    if size < LARGE:
        whole = _Part(np.arange(size), set())
        _anneal_part(step, found, whole, terms, min(BUDGET, BUDGET_SMALL * size), seed)
        return found
    budget = max(BUDGET, BUDGET_EACH * size)
    for turn in range(ROUNDS):
        used = set(found.tolist())
        for members in _parts(found, seed + turn):
            inside = set(found[members].tolist())
            used -= inside
            share = budget * len(members) // (size * ROUNDS)
            part = _Part(members, used)
            _anneal_part(step, found, part, terms._replace(most=terms.most - len(used)), share, seed + turn)
            used.update(found[members].tolist())
    return found


class _Part(NamedTuple):
    """Partitions that are searched together, and the consumers that others are at."""

    members: Ints
    others: set[int]


def _parts(found: Ints, seed: int) -> list[Ints]:
    """Partitions of `PART` consumers at a time, in an order that `seed` shuffles."""
    used = np.unique(found)
    shuffled = used[np.argsort((used * 2654435761 + seed * 40503) % 1_000_003, kind="stable")]
    turn = np.zeros(int(used.max()) + 1, np.int64)
    turn[shuffled] = np.arange(len(shuffled)) // PART
    order = np.argsort(turn[found], kind="stable")
    cuts = np.flatnonzero(np.diff(turn[found][order])) + 1
    return np.split(order, cuts)


def _anneal_part(step: _Step, found: Ints, these: _Part, terms: Terms, budget: int, seed: int) -> None:
    """Improve `found` for some partitions, which are all that is not fixed at their consumers."""
    part = these.members
    speed, home, start = step.speed[part], step.home[part], found[part]
    near = {*start.tolist(), *home.tolist()} - {HOMELESS}
    known = np.array(sorted(b for b in near if b not in these.others), np.int64)  # others' consumers are no home here
    size = len(known) + 4
    place = {name: i for i, name in enumerate(known.tolist())}
    fixed = np.zeros(size)
    old = known < len(step.consumers)
    fixed[: len(known)][old] = step.fixed[known[old]]
    order = np.argsort(speed, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    local_home = np.array([place.get(h, ELSEWHERE if h >= 0 else HOMELESS) for h in home.tolist()], np.int64)
    bins = Bins(
        of=np.array([place[b] for b in start.tolist()], np.int64),
        head=np.full(size, -1),
        after=np.full(len(part), -1),
        before=np.full(len(part), -1),
        fixed=fixed,
        load=np.zeros(size),
        count=np.zeros(size, np.int64),
        energy=np.zeros(size),
    )
    items = Items(speed, local_home, np.zeros(len(part)), step.variance[part], order, rank)
    anneal(items, bins, terms, budget, seed, new_work())
    new = count(max(len(step.consumers), int(found.max()) + 1))
    names = dict(enumerate(known.tolist()))
    found[part] = [names[b] if b in names else names.setdefault(b, next(new)) for b in bins.of.tolist()]


def _repaired(found: Ints, step: _Step) -> Ints:
    """`found`, without overload: the least partition that ends it goes where it fits most tightly, else alone."""
    size = max(int(found.max()) + 1, len(step.consumers))
    load = np.bincount(found, step.speed, minlength=size).astype(np.float64)
    load[: len(step.fixed)] += step.fixed
    number: Ints = np.bincount(found, minlength=size) + (np.pad(step.fixed, (0, size - len(step.fixed))) > 0)
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


def _exactly_relabelled(found: Ints, step: _Step) -> Ints:
    pinned = np.flatnonzero(step.fixed)
    return _relabelled(found, pinned, pinned, step)


def _named(found: Ints, step: _Step, problem: PackingProblem) -> Assignment:
    """Numbers for the bins, and a place for the partitions that cost nothing wherever they are.

    A new bin is a joined spare, else a consumer that has lost all it had, else the lowest free number.
    """
    names = dict(enumerate(step.consumers))
    assignment = {p: problem.current[p] for p in problem.pinned}
    used = {*assignment.values(), *(names[b] for b in found.tolist() if b in names)}
    spares = sorted(problem.spares - problem.set_aside - used)
    emptied = [c for c in step.consumers if c not in used and c not in spares]
    taken = {*used, *spares, *emptied, *problem.set_aside}
    numbers = iter([*spares, *emptied])
    lowest = (ConsumerId(n) for n in count(1) if n not in taken)
    for p, b in zip(step.partitions, found.tolist(), strict=True):
        if b not in names:
            names[b] = next(numbers, None) or next(lowest)
        assignment[p] = names[b]
    load: dict[ConsumerId, float] = {}
    for p, consumer in assignment.items():
        load[consumer] = load.get(consumer, 0.0) + problem.speeds[p]
    for p in problem.free_partitions():
        if p not in assignment:
            home = problem.home(p)
            if home is None or load.get(home, math.inf if load else 0.0) > problem.capacity:
                home = min(load, key=lambda c: (load[c], c), default=None)
            if home is None or load.get(home, 0.0) > problem.capacity:  # who reads one that is too fast reads no other
                home = next(numbers, None) or next(lowest)
            assignment[p] = home
            load.setdefault(home, 0.0)
    return assignment


def _stretched(problem: PackingProblem, packed: Assignment, random: RandomSource) -> tuple[PackingProblem, Assignment]:
    """The problem with the least capacity, up to a hundredth, at which BFD needs no more than `max_consumers`."""
    whole = replace(problem, min_consumers=0, max_consumers=None)
    most = max(problem.max_consumers or 1, len({problem.current[p] for p in problem.pinned}))
    low, high = problem.capacity, problem.capacity
    while len(set(packed.values())) > most:
        low, high = high, high * 2
        packed = best_fit_decreasing(replace(whole, capacity=high), random)
    while high > low * 1.01:
        middle = (low + high) / 2
        trial = best_fit_decreasing(replace(whole, capacity=middle), random)
        if len(set(trial.values())) <= most:
            high, packed = middle, trial
        else:
            low = middle
    return replace(problem, capacity=high), packed
