"""Which consumer takes over which bin, so that as much speed as possible stays where it is."""

import numpy as np

from kgs_core.accel.compiled import compiled, compiled_once
from kgs_core.packing.search.state import Flags, Floats, Ints

MOST_EXACT = 400
"""Bins of one tangle, up to which the assignment is exact; that takes time by the third power of it."""
MOST_EFFORT = 5 * MOST_EXACT**3
"""Third powers of all tangles' bins, up to which they are."""


def relabelled(bin_of: Ints, home: Ints, weight: Floats) -> Ints:
    """The consumer of each bin; -1: none is found for it. No consumer twice.

    The weight of what stays is greatest, but in tangles of more than `MOST_EXACT` bins, and in those that come after
    so many that they took `MOST_EFFORT`: there the heaviest pair is taken first.

    Args:
        bin_of: bin of each partition.
        home: consumer of each partition now; -1: none.
        weight: what it is worth to keep each where it is, > 0.

    References:
        Kuhn 1955, "The Hungarian method for the assignment problem"; Jonker and Volgenant 1987 for the form used.
    """
    settled = home >= 0
    width = int(home.max(initial=0)) + 1
    pairs, place = np.unique(bin_of[settled] * width + home[settled], return_inverse=True)
    bins, consumers = pairs // width, pairs % width
    labels = np.full(int(bin_of.max(initial=-1)) + 1, -1)
    tangle = _tangles(bins, consumers, len(labels), width)
    order = np.argsort(tangle, kind="stable")
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(tangle[order])) + 1, [len(order)]])
    value = np.bincount(place, weight[settled], minlength=len(pairs)).astype(np.float64)
    _match(bins[order], consumers[order], value[order], cuts, np.lexsort((-value[order], tangle[order])), labels)
    return labels


_NO_FLOATS, _NO_INTS = np.empty(0), np.empty(0, np.int64)


@compiled_once(_NO_INTS, _NO_INTS, 0, 0)
def _tangles(bins: Ints, consumers: Ints, count: int, width: int) -> Ints:
    """A number for each pair; pairs that hang together, by common bins or consumers, have the same."""
    root = np.arange(count + width)
    found = np.empty_like(bins)
    for last in (False, True):
        for row in range(len(bins)):
            node, other = bins[row], count + consumers[row]
            while root[node] != node:
                root[node] = root[root[node]]
                node = root[node]
            while root[other] != other:
                root[other] = root[root[other]]
                other = root[other]
            if last:
                found[row] = node
            else:
                root[other] = node
    return found


@compiled
def _match_heaviest(bins: Ints, consumers: Ints, heaviest: Ints, taken: Flags, labels: Ints) -> None:
    for i in heaviest:
        if labels[bins[i]] < 0 and not taken[consumers[i]]:
            labels[bins[i]] = consumers[i]
            taken[consumers[i]] = True


@compiled
def _assign(cost: Floats) -> Ints:  # noqa: C901, PLR0912 - one algorithm, written as it is published
    """Column of each row, at the least cost; there are at least as many columns as rows."""
    count, width = cost.shape
    u, v = np.zeros(count + 1), np.zeros(width + 1)
    row_of, way = np.zeros(width + 1, np.int64), np.zeros(width + 1, np.int64)
    for row in range(1, count + 1):
        row_of[0] = row
        column = 0
        least, used = np.full(width + 1, np.inf), np.zeros(width + 1, np.bool_)
        while True:
            used[column] = True
            here, step, following = row_of[column], np.inf, 0
            for j in range(1, width + 1):
                if not used[j]:
                    reduced = cost[here - 1, j - 1] - u[here] - v[j]
                    if reduced < least[j]:
                        least[j], way[j] = reduced, column
                    if least[j] < step:
                        step, following = least[j], j
            for j in range(width + 1):
                if used[j]:
                    u[row_of[j]] += step
                    v[j] -= step
                else:
                    least[j] -= step
            column = following
            if row_of[column] == 0:
                break
        while column:
            row_of[column] = row_of[way[column]]
            column = way[column]
    chosen = np.zeros(count, np.int64)
    for j in range(1, width + 1):
        if row_of[j]:
            chosen[row_of[j] - 1] = j - 1
    return chosen


@compiled_once(_NO_INTS, _NO_INTS, _NO_FLOATS, _NO_INTS, _NO_INTS, _NO_INTS)
def _match(  # noqa: C901, PLR0912 - a loop in a loop, without calls that make arrays
    bins: Ints, consumers: Ints, value: Floats, cuts: Ints, heaviest: Ints, labels: Ints
) -> None:
    """Fills `labels`, tangle after tangle; those lie between `cuts`, and `heaviest` has the pairs of each by weight."""
    width = consumers.max() + 1 if len(consumers) else 0
    taken, row_of, column_of = np.zeros(width, np.bool_), np.empty(len(labels), np.int64), np.full(width, -1)
    effort = 0
    for tangle in range(len(cuts) - 1):
        begin, end = cuts[tangle], cuts[tangle + 1]
        if end - begin == 1:
            labels[bins[begin]] = consumers[begin]
            continue
        rows = columns = 0
        for i in range(begin, end):  # by bin
            if i == begin or bins[i] != bins[i - 1]:
                row_of[bins[i]] = rows
                rows += 1
            if column_of[consumers[i]] < 0:
                column_of[consumers[i]] = columns
                columns += 1
        size = max(rows, columns)
        effort += size**3 if size <= MOST_EXACT else 0
        if size > MOST_EXACT or effort > MOST_EFFORT:
            _match_heaviest(bins, consumers, heaviest[begin:end], taken, labels)
            continue
        cost = np.zeros((rows, columns + rows))  # a bin may stay without a consumer
        for i in range(begin, end):
            cost[row_of[bins[i]], column_of[consumers[i]]] = -value[i]
        chosen = _assign(cost)
        for i in range(begin, end):
            if chosen[row_of[bins[i]]] == column_of[consumers[i]]:
                labels[bins[i]] = consumers[i]
