"""Compiled any fit, next fit and modified any fit over arrays, for very many partitions."""

from typing import NamedTuple

import numpy as np

from kgs_core.packing.compiled import compiled_loop
from kgs_core.packing.fast_bins import (
    NEXT,
    OPEN,
    Bins,
    Floats,
    Ints,
    Rules,
    choose,
    further,
    is_open,
    load_of,
    new_bins,
    new_rank,
    put,
)


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


def pack(rules: Rules, items: Items, ranks: int) -> Ints:
    """The rank of a bin, of so many `ranks`, for each partition."""
    found = np.full(len(items.speeds), -1)
    _pack(new_bins(rules, len(found), ranks), items, found)
    return found


@compiled_loop
def _pack(bins: Bins, items: Items, found: Ints) -> None:
    speeds, order = items.speeds, items.order
    for item in items.pinned:
        found[item] = put(bins, items.homes[item], speeds[item])
    if bins.fit == NEXT and len(items.pinned) == 0 and len(order) > 0:
        found[order[0]] = put(bins, new_rank(bins), speeds[order[0]])
    for group in range(len(items.starts) - 1):
        _pack_consumer(bins, items, items.members[items.starts[group] : items.starts[group + 1]], found)
    pack_rest(bins, items, found)


@compiled_loop
def pack_rest(bins: Bins, items: Items, found: Ints) -> None:
    """What has no bin by then gets one, in order."""
    for item in items.order:
        if found[item] < 0:
            rank = choose(bins, items.speeds[item])
            rank = rank if rank >= 0 else further(bins, items.homes[item])
            found[item] = put(bins, rank, items.speeds[item])


@compiled_loop
def _pack_consumer(bins: Bins, items: Items, members: Ints, found: Ints) -> None:
    """Lines 4 to 25 of Algorithm 1, as `modified_any_fit` has them."""
    speeds, home = items.speeds, items.homes[members[0]]
    begin, end = 0, len(members)
    if not is_open(bins, home):
        while end > 0:
            item = members[end - 1]
            rank = choose(bins, speeds[item])
            if rank < 0:
                break
            found[item] = put(bins, rank, speeds[item])
            end -= 1
        if end == 0 or bins.counts[OPEN] >= bins.most:
            return
        found[members[0]] = put(bins, home, speeds[members[0]])
        begin = 1
    for item in members[begin:end]:
        if load_of(bins, home) > bins.capacity - speeds[item]:
            return
        found[item] = put(bins, home, speeds[item])
