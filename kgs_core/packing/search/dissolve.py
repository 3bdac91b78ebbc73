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
        without, saved = _without_one(found, step)
        if _moved(without, step) - _moved(found, step) >= price * saved:
            return found
        found = without


def _without_one(found: Ints, step: SearchStep) -> tuple[Ints, float]:
    """`found`, without the least of those consumers, and its price, in those of a new one.

    0: there is none, or no room at the usual change of the load.
    """
    load = step.loads(found)
    size = len(load)
    variance = np.bincount(found, step.variance, minlength=size).astype(np.float64)
    number = np.bincount(found, minlength=size)
    held = np.pad(step.held, (0, size - len(step.held)))
    many = np.flatnonzero((number > _EMPTIED) & ~held)
    if not len(many):
        return found, 0.0
    least = many[np.argmin(load[many])]
    share = float(load[least]) - (step.empty[least] if least < len(step.empty) else 0.0)
    price = float(step.price[least]) if least < len(step.price) else 1.0
    may_take = ((number > 0) | held) & (np.arange(size) != least)

    def room(speed: float, change: float) -> Ints:
        return np.flatnonzero(may_take & (load + speed + np.sqrt(variance + change) <= 1 + _EPSILON))

    result, inside = found.copy(), np.flatnonzero(found == least)
    if len(whole := room(share, variance[least])):
        result[inside] = whole[np.argmax(load[whole])]
        return result, price
    if share > (may_take * (1 - load)).sum():
        return found, 0.0
    for p in inside[np.argsort(-step.speed[inside], kind="stable")].tolist():
        fits = room(step.speed[p], step.variance[p])
        if not len(fits):
            return found, 0.0
        home = step.home[p]
        result[p] = target = home if home in fits else fits[np.argmax(load[fits])]
        load[target] += step.speed[p]
        variance[target] += step.variance[p]
    return result, price


def _moved(found: Ints, step: SearchStep) -> float:
    """Speed of what has another consumer now, in units of C."""
    return float(step.speed[(step.home >= 0) & (found != step.home)].sum())
