"""Which consumer takes over which bin, so that as much speed as possible stays where it is."""

import numpy as np
from numpy.typing import NDArray

from kgs_core.packing.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_EXACT = 400
"""Bins of one tangle, up to which the assignment is exact; that takes time by the third power of it."""


def relabelled(bin_of: Ints, home: Ints, weight: Floats) -> dict[int, int]:
    """Bin -> consumer, for the bins that one is found for; no consumer twice.

    The weight of what stays is greatest, but in tangles of more than `MOST_EXACT` bins, where the heaviest pair is
    taken first.

    Args:
        bin_of: bin of each partition.
        home: consumer of each partition now; -1: none.
        weight: what it is worth to keep each where it is, > 0.

    References:
        Kuhn 1955, "The Hungarian method for the assignment problem"; Jonker and Volgenant 1987 for the form used.
    """
    settled = home >= 0
    pairs, place = np.unique(np.stack([bin_of[settled], home[settled]], axis=1), axis=0, return_inverse=True)
    worth = np.bincount(place.ravel(), weight[settled], minlength=len(pairs)).astype(np.float64)
    found: dict[int, int] = {}
    for tangle in _tangles(pairs):
        if len(tangle) == 1:
            found[int(pairs[tangle[0], 0])] = int(pairs[tangle[0], 1])
        else:
            found.update(_matched(pairs[tangle], worth[tangle]))
    return found


def _tangles(pairs: Ints) -> list[list[int]]:
    """Rows of `pairs` that hang together, by common bins or consumers."""
    root: dict[tuple[int, int], tuple[int, int]] = {}

    def find(node: tuple[int, int]) -> tuple[int, int]:
        root.setdefault(node, node)
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    rows = pairs.tolist()
    for label, consumer in rows:
        root[find((0, label))] = find((1, consumer))
    tangles: dict[tuple[int, int], list[int]] = {}
    for row, (label, _) in enumerate(rows):
        tangles.setdefault(find((0, label)), []).append(row)
    return list(tangles.values())


def _matched(pairs: Ints, worth: Floats) -> dict[int, int]:
    bins, rows = np.unique(pairs[:, 0], return_inverse=True)
    consumers, columns = np.unique(pairs[:, 1], return_inverse=True)
    if max(len(bins), len(consumers)) > MOST_EXACT:
        return _heaviest_first(pairs, worth)
    cost = np.zeros((len(bins), len(consumers) + len(bins)))  # a bin may stay without a consumer
    cost[rows, columns] = -worth
    chosen = _assign(cost)
    return {int(bins[row]): int(consumers[column]) for row, column in enumerate(chosen) if cost[row, column] < 0}


def _heaviest_first(pairs: Ints, worth: Floats) -> dict[int, int]:
    found: dict[int, int] = {}
    taken: set[int] = set()
    for row in np.lexsort((pairs[:, 1], pairs[:, 0], -worth)).tolist():
        label, consumer = map(int, pairs[row])
        if label not in found and consumer not in taken:
            found[label] = consumer
            taken.add(consumer)
    return found


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
