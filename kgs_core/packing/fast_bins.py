"""The bins of one packing over arrays, compiled: what `open_consumers` and `fits` do, for very many partitions.

A bin goes by the rank of its number among all that one may get, so that ranks are in the order of the numbers.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgs_core.packing.compiled import compiled_loop

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


def pack(rules: Rules, items: Items, ranks: int) -> Ints:
    """The rank of a bin, of so many `ranks`, for each partition."""
    count = len(items.speeds)
    leaves = 1 << (ranks - 1).bit_length()
    # a block is parted when half of it has been put in, and is free again when all of it is gone
    blocks = np.empty((2 + 2 * count // BLOCK if rules.fit == BEST else 1, BLOCK + 1), np.int64)
    blocks[:, BLOCK] = 0
    counts = np.array([0, -1, 0, 1, 0, 0])
    bins = _Bins(*rules, np.full(2 * leaves, np.inf), blocks, np.arange(len(blocks)), counts)
    found = np.full(count, -1)
    _pack(bins, items, found)
    return found


@compiled_loop
def _pack(bins: _Bins, items: Items, found: Ints) -> None:
    speeds, order = items.speeds, items.order
    for item in items.pinned:
        found[item] = _place(bins, items.homes[item], speeds[item])
    if bins.fit == NEXT and len(items.pinned) == 0 and len(order) > 0:
        found[order[0]] = _place(bins, _new_rank(bins), speeds[order[0]])
    for group in range(len(items.starts) - 1):
        _pack_consumer(bins, items, items.members[items.starts[group] : items.starts[group + 1]], found)
    for item in order:
        if found[item] < 0:
            rank = _choose(bins, speeds[item])
            found[item] = _place(bins, rank if rank >= 0 else _further(bins, items.homes[item]), speeds[item])


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
    tree, node = bins.tree, len(bins.tree) // 2 + rank
    tree[node] = load
    while node > 1:
        node //= 2
        least = min(tree[2 * node], tree[2 * node + 1])
        if tree[node] == least:
            break
        tree[node] = least
    return rank


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
