"""Sticky eviction over arrays, compiled: what `sticky_eviction` does, for very many partitions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgs_core.packing.compiled import compiled_loop
from kgs_core.packing.fast_bins import OPEN, Bins, Floats, Ints, Rules, choose, close, is_open, load_of, new_bins, put
from kgs_core.packing.fast_packing import Items, pack_rest
from kgs_core.packing.recipe import LOOKS

Flags = NDArray[np.bool_]


class Keeping(NamedTuple):
    """Bounds and weights of sticky eviction.

    Attributes:
        stays: whether a partition is pinned.
        turns: place of each partition from fast to slow.
        order: all partitions, from fast to slow.
        members: those with a home, consumer after consumer by rank, each from fast to slow.
        starts: where in `members` each consumer begins, and the end.
        least: consumers that are not freed.
        weight: a consumer with more load than so many capacities is not freed.
    """

    stays: Flags
    turns: Ints
    order: Ints
    members: Ints
    starts: Ints
    least: int
    weight: float


class _Subsets(NamedTuple):
    """Room for the search for what a consumer sheds.

    Attributes:
        free: partitions that it can shed, from fast to slow.
        after: sum of the speeds from each of them on.
        stack: place, sum and last choice of what is yet to be looked at.
        choices: a chosen partition's place, and the choice before it; -1: none.
    """

    free: Ints
    after: Floats
    stack: Floats
    choices: Ints


def keep(rules: Rules, items: Items, keeping: Keeping, ranks: int) -> Ints:
    """The rank of a bin, of so many `ranks`, for each partition; `items.members` and `starts` play no part."""
    count = len(items.speeds)
    widest = int(np.diff(keeping.starts).max(initial=0)) + 1
    subsets = _Subsets(
        np.empty(widest, np.int64), np.empty(widest), np.empty((LOOKS + 3, 3)), np.empty((LOOKS + 3, 2), np.int64)
    )
    at = items.homes.copy()
    _evict(rules.capacity, items, keeping, subsets, at)
    lists = np.full((3, max(count, ranks)), -1)
    bins = new_bins(rules, count, ranks)
    _fill(bins, items, keeping, lists, at)
    loads = bins.tree[len(bins.tree) // 2 :]
    may = loads < np.inf
    may[items.homes[items.pinned]] = False
    candidates = np.flatnonzero(may)
    _free(bins, items, keeping, candidates[np.argsort(loads[candidates], kind="stable")], lists, at)
    settled = np.flatnonzero((at >= 0) & ~keeping.stays)
    settled = settled[np.lexsort((keeping.turns[settled], at[settled]))]
    found = np.full(count, -1)
    _settle(new_bins(rules, count, ranks), items, settled, at, found)
    return found


@compiled_loop
def _evict(capacity: float, items: Items, keeping: Keeping, subsets: _Subsets, at: Ints) -> None:
    """Takes from every overloaded consumer what `least_evicted` says: `at` is -1 then."""
    speeds, free, choices = items.speeds, subsets.free, subsets.choices
    for group in range(len(keeping.starts) - 1):
        members = keeping.members[keeping.starts[group] : keeping.starts[group + 1]]
        total, count = 0.0, 0
        for item in members:
            total += speeds[item]
            if not keeping.stays[item] and speeds[item] > 0.0:
                free[count] = item
                count += 1
        if total - capacity > 0.0 and len(members) > 1:
            choice = _least_evicted(speeds, count, total - capacity, subsets)
            if choice < 0:
                for item in free[:count]:
                    at[item] = -1
            while choice > 0:
                at[free[choices[choice, 0]]] = -1
                choice = choices[choice, 1]


@compiled_loop
def _least_evicted(speeds: Floats, count: int, over: float, subsets: _Subsets) -> int:  # noqa: C901 - as its plain form
    """The last choice of the subset that `sticky_eviction.least_evicted` finds; -1: all."""
    free, after, stack, choices = subsets
    least = 0.0
    for i in range(count):
        least += speeds[free[i]]
    if least < over:
        return -1
    after[count] = 0.0
    for i in range(count - 1, -1, -1):
        after[i] = after[i + 1] + speeds[free[i]]
    best, made, height, looks = -1, 1, 1, 0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0.0, 0.0, 0.0  # choice 0: nothing
    while height > 0 and looks < LOOKS:
        looks += 1
        height -= 1
        i, total, choice = int(stack[height, 0]), stack[height, 1], int(stack[height, 2])
        if total >= over:
            if total < least:
                best, least = choice, total
        elif i < count and total + after[i] >= over:
            stack[height, 0] = i + 1
            height += 1
            if total + speeds[free[i]] < least:
                choices[made, 0], choices[made, 1] = i, choice
                stack[height, 0], stack[height, 1], stack[height, 2] = i + 1, total + speeds[free[i]], made
                height, made = height + 1, made + 1
    return best


@compiled_loop
def _fill(bins: Bins, items: Items, keeping: Keeping, lists: Ints, at: Ints) -> None:
    """The consumers with what they keep; what has none goes where it fits most tightly."""
    members, starts, speeds = keeping.members, keeping.starts, items.speeds
    for group in range(len(starts) - 1):
        home, count, load = items.homes[members[starts[group]]], 0, 0.0
        for item in members[starts[group] : starts[group + 1]]:
            if at[item] >= 0:
                count, load = count + 1, load + speeds[item]
                _link(lists, item, home)
        if count > 0:
            put(bins, home, load)
    for item in keeping.order:
        if at[item] < 0:
            rank = choose(bins, speeds[item])
            if rank >= 0:
                at[item] = put(bins, rank, speeds[item])
                _link(lists, item, rank)


@compiled_loop
def _link(lists: Ints, item: int, rank: int) -> None:
    """Head of each bin's list, and what follows each item."""
    lists[1, item], lists[0, rank] = lists[0, rank], item


@compiled_loop
def _sort(items: Ints, count: int, turns: Ints) -> None:
    """The first `count` of them, by turn; Shell's way, which makes no array."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            item, place = items[i], i
            while place >= gap and turns[items[place - gap]] > turns[item]:
                items[place] = items[place - gap]
                place -= gap
            items[place] = item
        gap //= 3


@compiled_loop
def _free(bins: Bins, items: Items, keeping: Keeping, candidates: Ints, lists: Ints, at: Ints) -> None:
    """Empties bins, in this order, until one cannot be."""
    speeds, held = items.speeds, lists[2]
    for rank in candidates:
        if bins.counts[OPEN] <= keeping.least or load_of(bins, rank) > keeping.weight * bins.capacity:
            return
        count, item = 0, lists[0, rank]
        while item >= 0:
            held[count] = item
            count, item = count + 1, lists[1, item]
        _sort(held, count, keeping.turns)
        close(bins, rank)
        for i in range(count):
            target = choose(bins, speeds[held[i]])
            if target < 0:
                for back in range(i):
                    at[held[back]] = rank
                return
            at[held[i]] = put(bins, target, speeds[held[i]])
        lists[0, rank] = -1
        for i in range(count):
            _link(lists, held[i], at[held[i]])


@compiled_loop
def _settle(bins: Bins, items: Items, settled: Ints, at: Ints, found: Ints) -> None:
    """The bins as they were found, under their numbers, as far as there may be so many; then the rest."""
    for item in items.pinned:
        found[item] = put(bins, items.homes[item], items.speeds[item])
    for item in settled:
        if is_open(bins, at[item]):
            fits = (
                load_of(bins, at[item]) <= bins.capacity - items.speeds[item]
            )  # a sum in another order is another one
        else:
            fits = bins.counts[OPEN] < bins.most
        if fits:
            found[item] = put(bins, at[item], items.speeds[item])
    pack_rest(bins, items, found)
