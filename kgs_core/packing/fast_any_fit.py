"""The any fit algorithms and sticky eviction for very many partitions: problems as arrays, packed by compiled code."""

import math

import numpy as np

from kgs_core.model import Assignment, ConsumerId
from kgs_core.packing.fast_bins import BEST, FIRST, NEXT, WORST, Floats, Ints, Rules
from kgs_core.packing.fast_keep import Keeping, keep
from kgs_core.packing.fast_packing import Items, pack
from kgs_core.packing.problem import PackingProblem, RandomSource
from kgs_core.packing.problem_arrays import ProblemArrays, as_arrays, distinct
from kgs_core.packing.recipe import Recipe
from kgs_core.packing.spread import spread

_FITS = {"first": FIRST, "best": BEST, "worst": WORST, "next": NEXT}


def pack_fast(problem: PackingProblem, random: RandomSource, recipe: Recipe) -> Assignment:
    """What the plain algorithm of this recipe gives, to the bit, in less time if there are many partitions."""
    if not problem.speeds:
        return {}
    arrays = as_arrays(problem)
    draws = np.array([random.random() for _ in range(int((~arrays.pinned).sum()))]) if recipe.shuffled else None
    numbers = pack_arrays(problem, arrays, recipe, draws)
    return spread(dict(zip(arrays.partitions, map(ConsumerId, numbers.tolist()), strict=True)), problem)


def pack_arrays(problem: PackingProblem, arrays: ProblemArrays, recipe: Recipe, draws: Floats | None = None) -> Ints:
    """The number of a consumer for each partition, at least one, not yet spread over `min_consumers`.

    Args:
        problem: for its capacity, bounds, spares and numbers quarantined.
        arrays: of the problem.
        recipe: of the algorithm.
        draws: random numbers for those that are not pinned; None: they are packed from fast to slow.
    """
    speeds, current, pinned = arrays.speeds, arrays.current, arrays.pinned
    lowest = len(speeds) + len(problem.quarantined)  # no number beyond is taken, unless somebody has it
    spares = np.array(sorted(problem.spares - problem.quarantined), np.int64)
    beyond = distinct(np.concatenate([spares[spares > lowest], current[current > lowest]]))
    may = np.ones(lowest, np.bool_)
    may[[number - 1 for number in problem.quarantined if number <= lowest]] = False
    homes = _ranks(current, lowest, beyond)
    fresh = np.concatenate([_ranks(spares, lowest, beyond), np.flatnonzero(may)])
    most = len(speeds) if problem.max_consumers is None else problem.max_consumers
    rules = Rules(_FITS[recipe.fit], float(problem.capacity), most, fresh)
    free, stay = np.flatnonzero(~pinned), np.flatnonzero(pinned)
    order = free[_order(-speeds[free] if draws is None else draws)]
    stay = stay[_order(homes[stay])]
    names = np.concatenate([np.arange(1, lowest + 1), beyond])
    if recipe.keeps:
        items = Items(speeds, homes, stay, order[:0], np.zeros(1, np.int64), order)
        return names[keep(rules, items, _keeping(problem, arrays, homes), len(names))]
    members, starts = _by_consumer(order[homes[order] >= 0], homes, speeds, recipe)
    return names[pack(rules, Items(speeds, homes, stay, members, starts, order), len(names))]


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


def _keeping(problem: PackingProblem, arrays: ProblemArrays, homes: Ints) -> Keeping:
    order = _order(-arrays.speeds)
    turns = np.empty_like(order)
    turns[order] = np.arange(len(order))
    members = order[homes[order] >= 0]
    members = members[_order(homes[members])]
    counts = np.bincount(homes[members])
    return Keeping(
        stays=arrays.pinned,
        turns=turns,
        order=order,
        members=members,
        starts=np.concatenate([[0], np.cumsum(counts[counts > 0])]),
        least=max(1, problem.min_consumers),
        weight=math.inf if problem.consumer_weight is None else problem.consumer_weight,
    )


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
