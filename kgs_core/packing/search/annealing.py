"""The compiled part of the search: simulated annealing over who reads what (docs/packing.md says why each term is).

Everything follows from the arguments: random numbers come from a generator that `seed` starts, and the end from a
budget of operations, not of time.
"""

import math

import numpy as np

from kgs_core.accel.compiled import compiled_loop, compiled_once
from kgs_core.packing.search.moves import drawn, eject, empty, go_home, random, relocate, reopen, share_out, swap
from kgs_core.packing.search.state import (
    HOMELESS,
    Floats,
    Ints,
    MovingPartitions,
    SearchBins,
    SearchWeights,
    Work,
    new_work,
)

_COOLING = (0.1, 0.01)
_STRICT_HEAT = 0.2
"""Where overload is no way out, it takes more heat to get about."""
_OVERLOAD = (1.0, 600.0)
"""Price of overload, at first and at last: what fits nearly is a way to what fits."""
_NEVER = 1e6
"""Price of overload where there must be none: above all that else can be won."""
_LENIENCE = 0.05
"""How far above C a move may go at first."""
_FADE = 0.9
"""At first a consumer costs its price only from this load on, less below: so a search can empty one by and by."""
_WEIGHED = (0.12, 0.28, 0.46, 0.85, 0.95, 0.98)
_FEWEST = (0.1, 0.2, 0.4, 0.4, 1.0, 1.0)
"""Shares of the kinds of moves, added up: go home, relocate, swap, eject, share out, empty, and what is left reopens a
consumer. Without a price none is worth emptying, and where all are full to the brim little but sharing out fits; with
one, more of that closes consumers too readily for the steps to come."""
_TAIL_STEPS, _TAIL_END = 1024, 6.0
_TAIL = np.array(
    [0.5 * math.erfc((2 * _TAIL_END * i / _TAIL_STEPS - _TAIL_END) / math.sqrt(2)) for i in range(_TAIL_STEPS + 2)]
)


@compiled_loop
def _tail(z: float) -> float:
    """Share of a normal distribution above z."""
    if z >= _TAIL_END:
        return 0.0
    if z <= -_TAIL_END:
        return 1.0
    place = (z + _TAIL_END) * (_TAIL_STEPS / (2 * _TAIL_END))
    i = int(place)
    return float(_TAIL[i] + (_TAIL[i + 1] - _TAIL[i]) * (place - i))


@compiled_loop
def _refresh(
    b: int, items: MovingPartitions, bins: SearchBins, terms: SearchWeights, overload: float, fade: float
) -> None:
    """Load, count and energy of consumer `b`, from its list."""
    load, count, moved, variance = bins.fixed[b] + bins.empty[b], 0, 0.0, 0.0
    least, second = 1e9, 1e9
    p = bins.head[b]
    while p >= 0:
        speed = items.speed[p]
        load += speed
        count += 1
        variance += items.variance[p]
        if items.home[p] != HOMELESS and items.home[p] != b:
            moved += speed
        if speed < least:
            least, second = speed, least
        elif speed < second:
            second = speed
        p = bins.after[p]
    bins.load[b], bins.count[b] = load, count
    if count == 0:
        bins.energy[b] = 0.0
        return
    over = load - 1.0
    price, used = terms.price * bins.price[b], (load - bins.empty[b]) / (1.0 - bins.empty[b])
    if 0.0 < used < fade:
        price = price * used / fade
    energy = price + moved + terms.evenness * over * over
    if count > 1 or bins.fixed[b] > 0.0 or bins.empty[b] > 0.0:
        if over > 1e-9:
            energy += overload * (over + 0.02)
        if variance > 0.0 and count > 1:
            # Normal change of the load; the least partition goes if that is enough, else the second, else both
            scale = 1.0 / math.sqrt(max(variance, 1e-12))
            first = _tail(-over * scale)
            if first > 0.0:
                both = _tail((second - over) * scale)
                shed = least * (first + both) + (second - least) * _tail((least - over) * scale)
                energy += terms.outlook * shed
    bins.energy[b] = energy


@compiled_loop
def _put(p: int, b: int, bins: SearchBins) -> None:
    """Take `p` off its list and put it on that of `b`."""
    a = bins.of[p]
    if a >= 0:
        before, after = bins.before[p], bins.after[p]
        if before >= 0:
            bins.after[before] = after
        else:
            bins.head[a] = after
        if after >= 0:
            bins.before[after] = before
    head = bins.head[b]
    bins.after[p], bins.before[p] = head, -1
    if head >= 0:
        bins.before[head] = p
    bins.head[b] = p
    bins.of[p] = b


@compiled_loop
def _touch(b: int, touched: Ints, old: Floats, count: int, bins: SearchBins) -> int:
    """Remember consumer `b` as it is, unless it is remembered."""
    for i in range(count):
        if touched[i] == b:
            return count
    touched[count] = b
    old[count, 0], old[count, 1], old[count, 2] = bins.load[b], bins.count[b], bins.energy[b]
    return count + 1


_FLOATS, _INTS = np.empty(0), np.empty(0, np.int64)


@compiled_once(
    MovingPartitions(_FLOATS, _INTS, _FLOATS, _INTS, _INTS),
    SearchBins(_INTS, _INTS, _INTS, _INTS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _INTS, _FLOATS),
    SearchWeights(price=0.0, outlook=0.0, evenness=0.0, most=0, strict=False),
    0,
    0,
    new_work(),
    loop=True,
)
def anneal(items: MovingPartitions, bins: SearchBins, terms: SearchWeights, budget: int, seed: int, work: Work) -> None:
    """Improve `bins`, in place, until `budget` operations are done.

    Args:
        items: the partitions, at least one.
        bins: `of` says where to begin; the rest is filled here, but for `fixed`.
        terms: what to weigh.
        budget: about one for each consumer that is looked at.
        seed: of the random numbers.
    """
    state, move, touched, old = work
    state[0] = np.uint64(88172645463325252) + np.uint64(seed) * np.uint64(2654435769)
    for _ in range(16):
        random(state)
    bins.head[:] = -1
    for p in range(len(bins.of)):
        b = bins.of[p]
        bins.of[p] = -1
        _put(p, b, bins)
    hot = _STRICT_HEAT if terms.strict else _COOLING[0]
    lenience = 0.0 if terms.strict else _LENIENCE
    heat, cap, overload, fade = hot, 1.0 + lenience, _NEVER, _FADE
    shares = _WEIGHED if terms.price > 0.0 else _FEWEST
    used, done, turn, phase = 0, 0, 0, -1
    while done < budget:
        if turn % 64 == 0:
            progress = done / budget
            heat = hot * (_COOLING[1] / hot) ** progress
            if int(progress * 20) != phase:
                phase = int(progress * 20)
                if not terms.strict:
                    overload = _OVERLOAD[0] + (_OVERLOAD[1] - _OVERLOAD[0]) * min(1.0, progress * 1.3) ** 2
                fade = max(0.0, _FADE * (1.0 - 1.25 * progress))
                cap = 1.0 + max(0.005, lenience * (1.0 - progress))
                used = 0
                for b in range(len(bins.load)):
                    _refresh(b, items, bins, terms, overload, fade)
                    used += bins.count[b] > 0
                done += len(bins.load)
        turn += 1
        done += 1
        kind = random(state)
        p = drawn(items, bins, state)
        may_open = used < terms.most or bins.count[bins.of[p]] == 1
        if kind < shares[0]:
            count = go_home(p, cap, may_open, items, bins, move)
        elif kind < shares[1]:
            count = relocate(p, cap, may_open, items, bins, move, state)
        elif kind < shares[2]:
            count = swap(p, cap, items, bins, move, state)
        elif kind < shares[3]:
            count = eject(p, cap, may_open, items, bins, move, state)
        elif kind < shares[4]:
            count = share_out(p, cap, items, bins, move, state)
            done += 1
        elif kind < shares[5]:
            count = empty(bins.of[p], items, bins, move, state)
            done += 2 * count
        else:
            count = reopen(items.home[p], items, bins, move) if used < terms.most else 0
            done += len(items.speed) // 20
        if count == 0:
            continue
        several = 0
        for i in range(count):
            a, b = bins.of[move[i, 0]], move[i, 1]
            several = _touch(a, touched, old, several, bins)
            several = _touch(b, touched, old, several, bins)
            _put(move[i, 0], b, bins)
            move[i, 1] = a
        change, was_used = 0.0, used
        for i in range(several):
            b = touched[i]
            _refresh(b, items, bins, terms, overload, fade)
            change += bins.energy[b] - old[i, 2]
            used += (bins.count[b] > 0) - (old[i, 1] > 0)
            done += 2 + bins.count[b] // 32
        if used > max(terms.most, was_used) or (change > 0.0 and random(state) >= math.exp(-change / heat)):
            for i in range(count - 1, -1, -1):
                _put(move[i, 0], move[i, 1], bins)
            for i in range(several):
                b = touched[i]
                bins.load[b], bins.count[b], bins.energy[b] = old[i, 0], int(old[i, 1]), old[i, 2]
            used = was_used
