"""Consumers of many partitions that the search leaves though the others have room for what they read."""

import numpy as np

from kgs_core.packing.search.parts import SearchStep
from kgs_core.packing.search.state import Ints

_EMPTIED = 8
"""The search itself empties no consumer of more partitions (`moves.empty`)."""
_EPSILON = 1e-9


def dissolved(found: Ints, step: SearchStep, price: float) -> Ints:
    """`found`, without consumers of many partitions that the others have room for, as long as that is worth the moves.

    Without it some hundred quiet partitions, which fit on one consumer, are left on four.
    """
    while True:
        without = _without_one(found, step)
        if without is None or _moved(without, step) - _moved(found, step) >= price:
            return found
        found = without


def _without_one(found: Ints, step: SearchStep) -> Ints | None:
    """`found`, without the least of those consumers; None: none, or no room at the usual change of the load."""
    size = max(int(found.max()) + 1, len(step.consumers))
    load = np.bincount(found, step.speed, minlength=size).astype(np.float64)
    load[: len(step.fixed)] += step.fixed
    variance = np.bincount(found, step.variance, minlength=size).astype(np.float64)
    number = np.bincount(found, minlength=size)
    held = np.pad(step.held, (0, size - len(step.held)))
    many = np.flatnonzero((number > _EMPTIED) & ~held)
    if not len(many):
        return None
    least = many[np.argmin(load[many])]
    may_take = ((number > 0) | held) & (np.arange(size) != least)

    def room(speed: float, change: float) -> Ints:
        return np.flatnonzero(may_take & (load + speed + np.sqrt(variance + change) <= 1 + _EPSILON))

    result, inside = found.copy(), np.flatnonzero(found == least)
    if len(whole := room(load[least], variance[least])):
        result[inside] = whole[np.argmax(load[whole])]
        return result
    if load[least] > (may_take * (1 - load)).sum():
        return None
    for p in inside[np.argsort(-step.speed[inside], kind="stable")].tolist():
        fits = room(step.speed[p], step.variance[p])
        if not len(fits):
            return None
        home = step.home[p]
        result[p] = target = home if home in fits else fits[np.argmax(load[fits])]
        load[target] += step.speed[p]
        variance[target] += step.variance[p]
    return result


def _moved(found: Ints, step: SearchStep) -> float:
    """Speed of what has another consumer now, in units of C."""
    return float(step.speed[(step.home >= 0) & (found != step.home)].sum())
