"""The published algorithms for very many partitions: problems as arrays, packed by compiled code."""

import numpy as np

from kgs_core.model import Assignment, ConsumerId, TopicPartition
from kgs_core.packing.fast_bins import BEST, FIRST, NEXT, WORST, Flags, Floats, Ints, Items, Rules, pack
from kgs_core.packing.fast_or_plain import Recipe
from kgs_core.packing.problem import PackingProblem, RandomSource
from kgs_core.packing.spread import spread

_FITS = {"first": FIRST, "best": BEST, "worst": WORST, "next": NEXT}
_NOBODY = 0


def pack_fast(problem: PackingProblem, random: RandomSource, recipe: Recipe) -> Assignment:
    """What the plain algorithm of this recipe gives, to the bit, in less time if there are many partitions."""
    partitions = sorted(problem.speeds)
    if not partitions:
        return {}
    speeds = np.fromiter(map(problem.speeds.__getitem__, partitions), np.float64, len(partitions))
    pinned = np.fromiter(map(problem.pinned.__contains__, partitions), np.bool_, len(partitions))
    draws = np.array([random.random() for _ in range(len(partitions) - pinned.sum())]) if recipe.shuffled else None
    numbers = pack_arrays(problem, recipe, speeds, _current(problem, partitions), pinned, draws)
    return spread(dict(zip(partitions, map(ConsumerId, numbers.tolist()), strict=True)), problem)


def pack_arrays(
    problem: PackingProblem, recipe: Recipe, speeds: Floats, current: Ints, pinned: Flags, draws: Floats | None
) -> Ints:
    """The number of a consumer for each partition; `min_consumers` plays no part.

    Args:
        problem: for its capacity, bounds, spares and numbers set aside.
        recipe: of the algorithm.
        speeds: of the partitions, by topic and number.
        current: the consumer that each has and may keep; 0: none.
        pinned: whether it must stay there.
        draws: random numbers for those that are not pinned; None: they are packed from fast to slow.
    """
    lowest = len(speeds) + len(problem.set_aside)  # no number beyond is taken, unless somebody has it
    spares = np.array(sorted(problem.spares - problem.set_aside), np.int64)
    beyond = np.unique(np.concatenate([spares[spares > lowest], current[current > lowest]]))
    may = np.ones(lowest, np.bool_)
    may[[number - 1 for number in problem.set_aside if number <= lowest]] = False
    homes = _ranks(current, lowest, beyond)
    fresh = np.concatenate([_ranks(spares, lowest, beyond), np.flatnonzero(may)])
    free, stay = np.flatnonzero(~pinned), np.flatnonzero(pinned)
    order = free[_order(-speeds[free] if draws is None else draws)]
    members, starts = _by_consumer(order[homes[order] >= 0], homes, speeds, recipe)
    most = len(speeds) if problem.max_consumers is None else problem.max_consumers
    found = pack(
        Rules(_FITS[recipe.fit], float(problem.capacity), most, fresh),
        Items(speeds, homes, stay[_order(homes[stay])], members, starts, order),
        lowest + len(beyond),
    )
    return np.concatenate([np.arange(1, lowest + 1), beyond])[found]


def _by_consumer(members: Ints, homes: Ints, speeds: Floats, recipe: Recipe) -> tuple[Ints, Ints]:
    """Partitions that come from fast to slow, consumer after consumer, and where each consumer begins."""
    if recipe.consumers_by is None or not len(members):
        return np.empty(0, np.int64), np.zeros(1, np.int64)
    homes, speeds = homes[members], speeds[members]
    counts = np.bincount(homes)
    measures = np.zeros(len(counts))
    # one by one, in the order of the plain algorithm's additions
    (np.add if recipe.consumers_by == "sum" else np.maximum).at(measures, homes, speeds)
    consumers = np.flatnonzero(counts)
    consumers = consumers[_order(-measures[consumers])]
    turns = np.zeros(len(counts), np.int64)
    turns[consumers] = np.arange(len(consumers))
    return members[_order(turns[homes])], np.concatenate([[0], np.cumsum(counts[consumers])])


def _order(keys: Floats | Ints) -> Ints:
    """What a stable argsort gives, in a fraction of its time."""
    order = np.argsort(keys)
    found = keys[order]
    ties = np.zeros(len(keys), np.int64)  # equal keys share a number, which rises by more than a place can
    np.cumsum(found[1:] != found[:-1], out=ties[1:])
    ties *= len(keys)
    return np.sort(ties + order) - ties


def _ranks(numbers: Ints, lowest: int, beyond: Ints) -> Ints:
    """Places of consumer numbers among 1 ... `lowest` and those `beyond`; -1 for 0."""
    return np.where(numbers <= lowest, numbers - 1, lowest + np.searchsorted(beyond, numbers))


def _current(problem: PackingProblem, partitions: list[TopicPartition]) -> Ints:
    """The consumer that each partition has and may keep, 0: none."""
    held = [problem.current.get(p, _NOBODY) for p in partitions]
    if problem.set_aside:
        held = [_NOBODY if consumer in problem.set_aside else consumer for consumer in held]
    return np.array(held, np.int64)
