"""The bins of one packing over arrays, compiled: what `open_consumers` and `fits` do, for very many partitions.

A bin goes by the rank of its number among all that one may get, so that ranks are in the order of the numbers.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgs_core.packing.compiled import compiled_loop

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST, BEST, WORST, NEXT = range(4)
BLOCK = 256
"""Bins that best fit keeps side by side, at most."""
OPEN, LAST = range(2)
_FRESH, _BLOCKS, _AT, _INDEX = range(2, 6)


class Rules(NamedTuple):
    """Rules of packing.

    Attributes:
        most: bins that there may be.
        fresh: ranks in the order in which bins that are nobody's take them; some may be in use by then.
    """

    fit: int
    capacity: float
    most: int
    fresh: Ints


class Bins(NamedTuple):
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


def new_bins(rules: Rules, count: int, ranks: int) -> Bins:
    """None open, for so many partitions and ranks."""
    leaves = 1 << (ranks - 1).bit_length()
    # a block is parted when half of it has been put in, and is free again when all of it is gone
    blocks = np.empty((2 + 2 * count // BLOCK if rules.fit == BEST else 1, BLOCK + 1), np.int64)
    blocks[:, BLOCK] = 0
    counts = np.array([0, -1, 0, 1, 0, 0])
    return Bins(*rules, np.full(2 * leaves, np.inf), blocks, np.arange(len(blocks)), counts)


@compiled_loop
def load_of(bins: Bins, rank: int) -> float:
    """Infinite: there is no such bin."""
    load: float = bins.tree[len(bins.tree) // 2 + rank]
    return load


@compiled_loop
def is_open(bins: Bins, rank: int) -> bool:
    """Whether there is a bin of this rank."""
    return load_of(bins, rank) < np.inf


@compiled_loop
def choose(bins: Bins, speed: float) -> int:
    """The bin that the fit takes among those with room; -1: there is none."""
    tree, room = bins.tree, bins.capacity - speed
    if bins.fit == NEXT:
        last = bins.counts[LAST]
        return last if last >= 0 and load_of(bins, last) <= room else -1
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
def further(bins: Bins, home: int) -> int:
    """What a partition gets that fits nowhere: a new bin, or where none may be added the least loaded one."""
    if bins.counts[OPEN] >= bins.most:
        return _lowest(bins.tree, bins.tree[1])
    return home if home >= 0 and not is_open(bins, home) else new_rank(bins)


@compiled_loop
def new_rank(bins: Bins) -> int:
    """The next that is nobody's."""
    while is_open(bins, bins.fresh[bins.counts[_FRESH]]):
        bins.counts[_FRESH] += 1
    rank: int = bins.fresh[bins.counts[_FRESH]]
    return rank


@compiled_loop
def put(bins: Bins, rank: int, speed: float) -> int:
    """Adds to the load of a bin, which it opens if need be; returns its rank."""
    load = speed
    if is_open(bins, rank):
        load += load_of(bins, rank)
        if bins.fit == BEST:
            _take_out(bins, rank)
    else:
        bins.counts[OPEN] += 1
        bins.counts[LAST] = rank
    if bins.fit == BEST:
        _put_in(bins, rank, load)
    _write(bins.tree, rank, load)
    return rank


@compiled_loop
def close(bins: Bins, rank: int) -> None:
    """The bin is no more; for best fit."""
    _find(bins, load_of(bins, rank), rank)
    _take_out(bins, rank)
    _write(bins.tree, rank, np.inf)
    bins.counts[OPEN] -= 1


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
def _is_before(bins: Bins, other: int, load: float, rank: int) -> bool:
    """Whether the bin `other` stands before one of this load and rank."""
    its_load = load_of(bins, other)
    return its_load < load or (its_load == load and other > rank)


@compiled_loop
def _find(bins: Bins, load: float, rank: int) -> None:
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
def _take_out(bins: Bins, rank: int) -> None:
    shelf, counts = bins.shelf, bins.counts
    block = bins.blocks[shelf[counts[_AT]]]
    if counts[_INDEX] >= block[BLOCK] or block[counts[_INDEX]] != rank:  # else it is the one just chosen
        _find(bins, load_of(bins, rank), rank)
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
def _put_in(bins: Bins, rank: int, load: float) -> None:
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
def _part(bins: Bins, at: int) -> None:
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
