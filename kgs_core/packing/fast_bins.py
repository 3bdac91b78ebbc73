"""The bins of one packing over arrays, compiled: what `open_consumers` and `fits` do, for very many partitions.

A bin goes by the rank of its number among all that one may get, so that ranks are in the order of the numbers.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgs_core.packing.compiled import compiled_loop
from kgs_core.packing.keep_and_shed import LOOKS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

FIRST, BEST, WORST, NEXT = range(4)
BLOCK = 256
"""Bins that best fit keeps side by side, at most."""
_OPEN, _LAST, _FRESH, _BLOCKS, _AT, _INDEX = range(6)


class Rules(NamedTuple):
    """How to pack.

    Attributes:
        most: bins that there may be.
        fresh: ranks in the order in which bins that are nobody's take them; some may be in use by then.
    """

    fit: int
    capacity: float
    most: int
    fresh: Ints


class Items(NamedTuple):
    """The partitions, by rank, and in which order they are packed.

    Attributes:
        homes: rank of the consumer that each has and may keep; -1: none.
        pinned: partitions that stay, by consumer and rank.
        members: for a modified any fit the free ones with a home, consumer after consumer, each from fast to slow.
        starts: where in `members` each consumer begins, and the end.
        order: all that are free, in the order in which those that have no bin by then get one.
    """

    speeds: Floats
    homes: Ints
    pinned: Ints
    members: Ints
    starts: Ints
    order: Ints


class _Bins(NamedTuple):
    """The bins as they are filled.

    Attributes:
        tree: the least load of every range of ranks as a binary tree, last the loads; infinite: no such bin.
        blocks: for best fit the bins by load and, of equal loads, with falling rank, so many side by side; in the last
            column how many.
        shelf: the blocks in order, then those that are not in use.
        counts: open bins, the last one opened, how far `fresh` is used up, blocks in use, and where the last search in
            the blocks ended: place on the shelf and in the block.
    """

    fit: int
    capacity: float
    most: int
    fresh: Ints
    tree: Floats
    blocks: Ints
    shelf: Ints
    counts: Ints


class Keeping(NamedTuple):
    """What it takes to keep and shed.

    Attributes:
        stays: whether a partition is pinned.
        turns: place of each partition from fast to slow.
        order: all partitions, from fast to slow.
        members: those with a home, consumer after consumer by rank, each from fast to slow.
        starts: where in `members` each consumer begins, and the end.
        least: consumers that are not freed.
        worth: a consumer with more load than so many capacities is not freed.
    """

    stays: Flags
    turns: Ints
    order: Ints
    members: Ints
    starts: Ints
    least: int
    worth: float


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


def pack(rules: Rules, items: Items, ranks: int) -> Ints:
    """The rank of a bin, of so many `ranks`, for each partition."""
    found = np.full(len(items.speeds), -1)
    _pack(_new_bins(rules, len(found), ranks), items, found)
    return found


def keep(rules: Rules, items: Items, keeping: Keeping, ranks: int) -> Ints:
    """The rank of a bin, of so many `ranks`, for each partition; `items.members` and `starts` play no part."""
    count = len(items.speeds)
    widest = int(np.diff(keeping.starts).max(initial=0)) + 1
    subsets = _Subsets(
        np.empty(widest, np.int64), np.empty(widest), np.empty((LOOKS + 3, 3)), np.empty((LOOKS + 3, 2), np.int64)
    )
    at = items.homes.copy()
    _shed(rules.capacity, items, keeping, subsets, at)
    lists = np.full((3, max(count, ranks)), -1)
    bins = _new_bins(rules, count, ranks)
    _fill(bins, items, keeping, lists, at)
    loads = bins.tree[len(bins.tree) // 2 :]
    may = loads < np.inf
    may[items.homes[items.pinned]] = False
    candidates = np.flatnonzero(may)
    _free(bins, items, keeping, candidates[np.argsort(loads[candidates], kind="stable")], lists, at)
    settled = np.flatnonzero((at >= 0) & ~keeping.stays)
    settled = settled[np.lexsort((keeping.turns[settled], at[settled]))]
    found = np.full(count, -1)
    _settle(_new_bins(rules, count, ranks), items, settled, at, found)
    return found


def _new_bins(rules: Rules, count: int, ranks: int) -> _Bins:
    leaves = 1 << (ranks - 1).bit_length()
    # a block is parted when half of it has been put in, and is free again when all of it is gone
    blocks = np.empty((2 + 2 * count // BLOCK if rules.fit == BEST else 1, BLOCK + 1), np.int64)
    blocks[:, BLOCK] = 0
    counts = np.array([0, -1, 0, 1, 0, 0])
    return _Bins(*rules, np.full(2 * leaves, np.inf), blocks, np.arange(len(blocks)), counts)


@compiled_loop
def _pack(bins: _Bins, items: Items, found: Ints) -> None:
    speeds, order = items.speeds, items.order
    for item in items.pinned:
        found[item] = _place(bins, items.homes[item], speeds[item])
    if bins.fit == NEXT and len(items.pinned) == 0 and len(order) > 0:
        found[order[0]] = _place(bins, _new_rank(bins), speeds[order[0]])
    for group in range(len(items.starts) - 1):
        _pack_consumer(bins, items, items.members[items.starts[group] : items.starts[group + 1]], found)
    _pack_rest(bins, items, found)


@compiled_loop
def _pack_rest(bins: _Bins, items: Items, found: Ints) -> None:
    for item in items.order:
        if found[item] < 0:
            rank = _choose(bins, items.speeds[item])
            rank = rank if rank >= 0 else _further(bins, items.homes[item])
            found[item] = _place(bins, rank, items.speeds[item])


@compiled_loop
def _pack_consumer(bins: _Bins, items: Items, members: Ints, found: Ints) -> None:
    """Lines 4 to 25 of Algorithm 1, as `modified_any_fit` has them."""
    speeds, home = items.speeds, items.homes[members[0]]
    begin, end = 0, len(members)
    if not _is_open(bins, home):
        while end > 0:
            item = members[end - 1]
            rank = _choose(bins, speeds[item])
            if rank < 0:
                break
            found[item] = _place(bins, rank, speeds[item])
            end -= 1
        if end == 0 or bins.counts[_OPEN] >= bins.most:
            return
        found[members[0]] = _place(bins, home, speeds[members[0]])
        begin = 1
    for item in members[begin:end]:
        if _load(bins, home) > bins.capacity - speeds[item]:
            return
        found[item] = _place(bins, home, speeds[item])


@compiled_loop
def _load(bins: _Bins, rank: int) -> float:
    load: float = bins.tree[len(bins.tree) // 2 + rank]
    return load


@compiled_loop
def _is_open(bins: _Bins, rank: int) -> bool:
    return _load(bins, rank) < np.inf


@compiled_loop
def _choose(bins: _Bins, speed: float) -> int:
    """The bin that the fit takes among those with room; -1: there is none."""
    tree, room = bins.tree, bins.capacity - speed
    if bins.fit == NEXT:
        last = bins.counts[_LAST]
        return last if last >= 0 and _load(bins, last) <= room else -1
    if not tree[1] <= room:
        return -1
    if bins.fit == BEST:
        _find(bins, room, -1)
        bins.counts[_INDEX] -= 1
        best: int = bins.blocks[bins.shelf[bins.counts[_AT]], bins.counts[_INDEX]]
        return best
    return _lowest(tree, room if bins.fit == FIRST else tree[1])


@compiled_loop
def _lowest(tree: Floats, room: float) -> int:
    """The lowest rank of those with room, where there is one."""
    node, leaves = 1, len(tree) // 2
    while node < leaves:
        node *= 2
        if not tree[node] <= room:
            node += 1
    return node - leaves


@compiled_loop
def _further(bins: _Bins, home: int) -> int:
    """What a partition gets that fits nowhere: a new bin, or where none may be added the least loaded one."""
    if bins.counts[_OPEN] >= bins.most:
        return _lowest(bins.tree, bins.tree[1])
    return home if home >= 0 and not _is_open(bins, home) else _new_rank(bins)


@compiled_loop
def _new_rank(bins: _Bins) -> int:
    while _is_open(bins, bins.fresh[bins.counts[_FRESH]]):
        bins.counts[_FRESH] += 1
    rank: int = bins.fresh[bins.counts[_FRESH]]
    return rank


@compiled_loop
def _place(bins: _Bins, rank: int, speed: float) -> int:
    """Adds to the load of a bin, which it opens if need be; returns its rank."""
    load = speed
    if _is_open(bins, rank):
        load += _load(bins, rank)
        if bins.fit == BEST:
            _take_out(bins, rank)
    else:
        bins.counts[_OPEN] += 1
        bins.counts[_LAST] = rank
    if bins.fit == BEST:
        _put_in(bins, rank, load)
    _write(bins.tree, rank, load)
    return rank


@compiled_loop
def _close(bins: _Bins, rank: int) -> None:
    """The bin is no more; for best fit."""
    _find(bins, _load(bins, rank), rank)
    _take_out(bins, rank)
    _write(bins.tree, rank, np.inf)
    bins.counts[_OPEN] -= 1


@compiled_loop
def _write(tree: Floats, rank: int, load: float) -> None:
    node = len(tree) // 2 + rank
    tree[node] = load
    while node > 1:
        node //= 2
        least = min(tree[2 * node], tree[2 * node + 1])
        if tree[node] == least:
            break
        tree[node] = least


@compiled_loop
def _is_before(bins: _Bins, other: int, load: float, rank: int) -> bool:
    """Whether the bin `other` stands before one of this load and rank."""
    its_load = _load(bins, other)
    return its_load < load or (its_load == load and other > rank)


@compiled_loop
def _find(bins: _Bins, load: float, rank: int) -> None:
    """Sets `counts` to where a bin of this load and rank is or belongs.

    Never to the first place of a block but of the first one, so that the bin before it stands in the same block.
    """
    low, high = 0, bins.counts[_BLOCKS] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if _is_before(bins, bins.blocks[bins.shelf[middle], 0], load, rank):
            low = middle
        else:
            high = middle - 1
    block = bins.blocks[bins.shelf[low]]
    begin, end = 0, block[BLOCK]
    while begin < end:
        middle = (begin + end) // 2
        if _is_before(bins, block[middle], load, rank):
            begin = middle + 1
        else:
            end = middle
    bins.counts[_AT], bins.counts[_INDEX] = low, begin


@compiled_loop
def _take_out(bins: _Bins, rank: int) -> None:
    shelf, counts = bins.shelf, bins.counts
    block = bins.blocks[shelf[counts[_AT]]]
    if counts[_INDEX] >= block[BLOCK] or block[counts[_INDEX]] != rank:  # else it is the one just chosen
        _find(bins, _load(bins, rank), rank)
        if counts[_INDEX] == bins.blocks[shelf[counts[_AT]], BLOCK]:
            counts[_AT], counts[_INDEX] = counts[_AT] + 1, 0
        block = bins.blocks[shelf[counts[_AT]]]
    block[BLOCK] -= 1
    for place in range(counts[_INDEX], block[BLOCK]):
        block[place] = block[place + 1]
    if block[BLOCK] == 0 and counts[_BLOCKS] > 1:
        counts[_BLOCKS] -= 1
        emptied = shelf[counts[_AT]]
        for place in range(counts[_AT], counts[_BLOCKS]):
            shelf[place] = shelf[place + 1]
        shelf[counts[_BLOCKS]] = emptied


@compiled_loop
def _put_in(bins: _Bins, rank: int, load: float) -> None:
    _find(bins, load, rank)
    if bins.blocks[bins.shelf[bins.counts[_AT]], BLOCK] == BLOCK:
        _part(bins, bins.counts[_AT])
        _find(bins, load, rank)
    block, index = bins.blocks[bins.shelf[bins.counts[_AT]]], bins.counts[_INDEX]
    for place in range(block[BLOCK], index, -1):
        block[place] = block[place - 1]
    block[index] = rank
    block[BLOCK] += 1


@compiled_loop
def _part(bins: _Bins, at: int) -> None:
    """Moves the upper half of a full block to a new one that follows it."""
    shelf, used, half = bins.shelf, bins.counts[_BLOCKS], BLOCK // 2
    new = shelf[used]
    full, other = bins.blocks[shelf[at]], bins.blocks[new]
    for place in range(half):
        other[place] = full[half + place]
    full[BLOCK], other[BLOCK] = half, half
    for place in range(used, at + 1, -1):
        shelf[place] = shelf[place - 1]
    shelf[at + 1] = new
    bins.counts[_BLOCKS] += 1


@compiled_loop
def _shed(capacity: float, items: Items, keeping: Keeping, subsets: _Subsets, at: Ints) -> None:
    """Takes from every overloaded consumer what `least_shed` says: `at` is -1 then."""
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
            choice = _least_shed(speeds, count, total - capacity, subsets)
            if choice < 0:
                for item in free[:count]:
                    at[item] = -1
            while choice > 0:
                at[free[choices[choice, 0]]] = -1
                choice = choices[choice, 1]


@compiled_loop
def _least_shed(speeds: Floats, count: int, over: float, subsets: _Subsets) -> int:  # noqa: C901 - as its plain form
    """The last choice of the subset that `keep_and_shed.least_shed` finds; -1: all."""
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
def _fill(bins: _Bins, items: Items, keeping: Keeping, lists: Ints, at: Ints) -> None:
    """The consumers with what they keep; what has none goes where it fits most tightly."""
    members, starts, speeds = keeping.members, keeping.starts, items.speeds
    for group in range(len(starts) - 1):
        home, count, load = items.homes[members[starts[group]]], 0, 0.0
        for item in members[starts[group] : starts[group + 1]]:
            if at[item] >= 0:
                count, load = count + 1, load + speeds[item]
                _link(lists, item, home)
        if count > 0:
            _place(bins, home, load)
    for item in keeping.order:
        if at[item] < 0:
            rank = _choose(bins, speeds[item])
            if rank >= 0:
                at[item] = _place(bins, rank, speeds[item])
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
def _free(bins: _Bins, items: Items, keeping: Keeping, candidates: Ints, lists: Ints, at: Ints) -> None:
    """Empties bins, in this order, until one cannot be."""
    speeds, held = items.speeds, lists[2]
    for rank in candidates:
        if bins.counts[_OPEN] <= keeping.least or _load(bins, rank) > keeping.worth * bins.capacity:
            return
        count, item = 0, lists[0, rank]
        while item >= 0:
            held[count] = item
            count, item = count + 1, lists[1, item]
        _sort(held, count, keeping.turns)
        _close(bins, rank)
        for i in range(count):
            target = _choose(bins, speeds[held[i]])
            if target < 0:
                for back in range(i):
                    at[held[back]] = rank
                return
            at[held[i]] = _place(bins, target, speeds[held[i]])
        lists[0, rank] = -1
        for i in range(count):
            _link(lists, held[i], at[held[i]])


@compiled_loop
def _settle(bins: _Bins, items: Items, settled: Ints, at: Ints, found: Ints) -> None:
    """The bins as they were found, under their numbers, as far as there may be so many; then the rest."""
    for item in items.pinned:
        found[item] = _place(bins, items.homes[item], items.speeds[item])
    for item in settled:
        if _is_open(bins, at[item]):
            fits = _load(bins, at[item]) <= bins.capacity - items.speeds[item]  # a sum in another order is another one
        else:
            fits = bins.counts[_OPEN] < bins.most
        if fits:
            found[item] = _place(bins, at[item], items.speeds[item])
    _pack_rest(bins, items, found)
