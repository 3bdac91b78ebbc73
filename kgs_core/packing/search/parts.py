"""Hands the partitions to the compiled search: all at once, or with very many in parts, one after the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kgs_core.model import Assignment, TopicPartition
from kgs_core.packing.search.annealing import anneal
from kgs_core.packing.search.state import (
    ELSEWHERE,
    HOMELESS,
    Flags,
    Floats,
    Ints,
    MovingPartitions,
    SearchBins,
    SearchWeights,
    Work,
    distinct,
    new_work,
)

BUDGET = 300_000
"""Operations of one search."""
BUDGET_SMALL = 10_000
"""For each partition of a small group, whose search then ends earlier."""
BUDGET_EACH, BUDGET_LARGE, BUDGET_VERY_LARGE = 150, 3_000_000, 60
"""For each partition of a large group; up to so many in all; but at least so many for each."""
LARGE = 2_000
"""From so many partitions on, parts of the group are searched one after the other."""
PART = 400
"""Consumers of a part."""
SPARE = 4
"""New consumers that a part may open."""
NOBODY = 0
"""In place of a consumer's number."""


@dataclass(frozen=True, slots=True)
class SearchStep:
    """A packing problem as arrays: partitions that may move 0 ... P - 1, consumers 0 ... K - 1, speeds in units of C.

    Attributes:
        partitions: all, by topic and number; `bytes_per_s`, `current` and the flags have a value for each of these.
        current: number of the consumer that each has and may keep; `NOBODY`.
        pinned: whether it must stay there; `moving`: whether it may move and costs something.
        consumers: their numbers, ascending.
        speed: of each partition, > 0.
        home: consumer of each now; `HOMELESS`.
        variance: of the change of each speed until the next packing.
        fixed: speed of what is pinned to each consumer.
        held: whether something is.
        empty, price: of each consumer, see `SearchBins`.
    """

    partitions: Sequence[TopicPartition]
    bytes_per_s: Floats
    current: Ints
    pinned: Flags
    moving: Flags
    consumers: Ints
    speed: Floats
    home: Ints
    variance: Floats
    fixed: Floats
    held: Flags
    empty: Floats
    price: Floats

    def loads(self, found: Ints) -> Floats:
        """Load of each bin of `found` and of each consumer, as `SearchBins` has it."""
        size = max(int(found.max()) + 1, len(self.consumers))
        load = np.bincount(found, self.speed, minlength=size).astype(np.float64)
        load[: len(self.fixed)] += self.fixed + self.empty
        return load

    def consumers_of(self, assignment: Assignment) -> Ints:
        """The consumer of each partition in an assignment of all of them."""
        return np.fromiter(map(assignment.__getitem__, self.partitions), np.int64, len(self.partitions))


def annealed(step: SearchStep, begin: Ints, terms: SearchWeights, seed: int) -> Ints:
    """A better bin for each partition than `begin` has; bins from K on are new consumers."""
    size = len(step.speed)
    if size < LARGE:
        parts = _Parts(step, begin, SPARE)
        parts.anneal(np.arange(size), terms, min(BUDGET, BUDGET_SMALL * size), seed)
        return parts.found
    budget = max(BUDGET, min(BUDGET_EACH * size, BUDGET_LARGE), BUDGET_VERY_LARGE * size)
    parts = _Parts(step, begin, SPARE * (size // PART + 1))
    for members in _cut(begin, seed):
        parts.anneal(members, terms, budget * len(members) // size, seed)
    return parts.found


def _cut(found: Ints, seed: int) -> Iterator[Ints]:
    """Partitions of `PART` consumers at a time, in an order that `seed` shuffles."""
    used = distinct(found)
    shuffled = used[np.argsort((used * 2654435761 + seed * 40503) % 1_000_003, kind="stable")]
    turn = np.zeros(int(used.max()) + 1, np.int64)
    turn[shuffled] = np.arange(len(shuffled)) // PART
    order = np.argsort(turn[found], kind="stable")
    cuts = np.flatnonzero(np.diff(turn[found][order])) + 1
    yield from np.split(order, cuts)


class _Parts:
    """The bins of all partitions while some are searched."""

    def __init__(self, step: SearchStep, begin: Ints, spare: int) -> None:
        """`spare` bins beyond those in `begin` can be opened in all."""
        self.found = begin.copy()
        self._step = step
        self._new = max(len(step.consumers), int(begin.max()) + 1)
        self._used = np.zeros(self._new + spare, np.bool_)
        self._used[begin] = True
        self._count = int(self._used.sum())
        self._place = np.full(len(self._used), ELSEWHERE)
        self._work: Work = new_work()

    def anneal(self, members: Ints, terms: SearchWeights, budget: int, seed: int) -> None:
        """Search for the bins of some partitions, which are all that is not pinned to those bins."""
        step, start = self._step, self.found[members]
        home, speed = step.home[members], step.speed[members]
        own = distinct(start)
        settled = home[home >= 0]
        # a bin that others are in is no home here
        known = distinct(np.concatenate([own, settled[~self._used[settled]]]))
        size = len(known) + SPARE
        place = self._place
        place[known] = np.arange(len(known))
        bins = self._bins(place[start], known, size)
        order = np.argsort(speed, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        local = np.where(home >= 0, place[home], HOMELESS)
        items = MovingPartitions(speed, local, step.variance[members], order, rank)
        others = self._count - len(own)
        anneal(items, bins, terms._replace(most=terms.most - others), budget, seed, self._work)
        place[known] = ELSEWHERE
        self._keep(members, own, known, bins.of)

    def _bins(self, of: Ints, known: Ints, size: int) -> SearchBins:
        fixed, empty, price = np.zeros(size), np.zeros(size), np.ones(size)
        old = known < len(self._step.consumers)
        fixed[: len(known)][old] = self._step.fixed[known[old]]
        empty[: len(known)][old] = self._step.empty[known[old]]
        price[: len(known)][old] = self._step.price[known[old]]
        return SearchBins(
            of=of,
            head=np.full(size, -1),
            after=np.full(len(of), -1),
            before=np.full(len(of), -1),
            fixed=fixed,
            empty=empty,
            price=price,
            load=np.zeros(size),
            count=np.zeros(size, np.int64),
            energy=np.zeros(size),
        )

    def _keep(self, members: Ints, own: Ints, known: Ints, of: Ints) -> None:
        names = np.append(known, np.zeros(SPARE, np.int64))
        found = distinct(of)
        opened = found[found >= len(known)]
        names[opened] = self._new + np.arange(len(opened))
        self._new += len(opened)
        self.found[members] = names[of]
        self._used[own] = False
        self._used[names[found]] = True
        self._count += len(found) - len(own)
