"""The compiled part of the search: simulated annealing over who reads what (docs/packing.md says why each term is).

Everything follows from the arguments: random numbers come from a generator that `seed` starts, and the end from a
budget of operations, not of time.
"""

import math

import numpy as np
from numpy.typing import NDArray

from kgs_core.packing.annealing_state import HOMELESS, LIMIT, Bins, Floats, Ints, Items, Terms, Work
from kgs_core.packing.compiled import compiled_loop

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
_GO_HOME, _RELOCATE, _SWAP, _EJECT, _EMPTY = 0.12, 0.3, 0.5, 0.95, 0.98
"""Shares of the kinds of moves, added up; what is left reopens a consumer."""
_BIAS, _DRAWS = 0.65, 4
"""How often, and from how many, a partition is sought that has moved or is overloaded: most others are well placed."""
_INTO_HOME = 0.8
"""How often one that has moved is put in the place of one that reads where it comes from."""
_TAIL_STEPS, _TAIL_END = 1024, 6.0
_TAIL = np.array(
    [0.5 * math.erfc((2 * _TAIL_END * i / _TAIL_STEPS - _TAIL_END) / math.sqrt(2)) for i in range(_TAIL_STEPS + 2)]
)


@compiled_loop
def _random(state: NDArray[np.uint64]) -> float:
    """In [0, 1), by xorshift64 (Marsaglia 2003)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return float(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled_loop
def _below(state: NDArray[np.uint64], count: int) -> int:
    return int(_random(state) * count)


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
def _refresh(b: int, items: Items, bins: Bins, terms: Terms, overload: float, fade: float) -> None:
    """Load, count and energy of consumer `b`, from its list."""
    load, count, moved, drift, variance = bins.fixed[b], 0, 0.0, 0.0, 0.0
    least, second = 1e9, 1e9
    p = bins.head[b]
    while p >= 0:
        speed = items.speed[p]
        load += speed
        count += 1
        drift += items.drift[p]
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
    price = terms.price if load >= fade else terms.price * load / fade
    energy = price + moved + terms.evenness * over * over
    if count > 1 or bins.fixed[b] > 0.0:
        if over > 1e-9:
            energy += overload * (over + 0.02)
        if variance > 0.0 and count > 1:
            # Normal change of the load; the least partition goes if that is enough, else the second, else both
            scale = 1.0 / math.sqrt(variance)
            room = -over - drift
            first = _tail(room * scale)
            if first > 0.0:
                both = _tail((room + second) * scale)
                shed = least * (first + both) + (second - least) * _tail((room + least) * scale)
                energy += terms.outlook * shed
    bins.energy[b] = energy


@compiled_loop
def _put(p: int, b: int, bins: Bins) -> None:
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
def _roomy(speed: float, not_a: int, not_b: int, cap: float, tries: int, bins: Bins, state: NDArray[np.uint64]) -> int:
    """A consumer in use with room for `speed`, drawn; -1: none in so many tries."""
    for _ in range(tries):
        b = _below(state, len(bins.load))
        if bins.count[b] > 0 and b != not_a and b != not_b and bins.load[b] + speed <= cap:
            return b
    return -1


@compiled_loop
def _go_home(p: int, cap: float, may_open: bool, items: Items, bins: Bins, move: Ints) -> int:
    home = items.home[p]
    if home < 0 or home == bins.of[p]:
        return 0
    if bins.count[home] == 0:
        if not may_open:
            return 0
    elif bins.load[home] + items.speed[p] > cap + 0.03:
        return 0
    move[0, 0], move[0, 1] = p, home
    return 1


@compiled_loop
def _relocate(
    p: int, cap: float, may_open: bool, items: Items, bins: Bins, move: Ints, state: NDArray[np.uint64]
) -> int:
    a = bins.of[p]
    b = _roomy(items.speed[p], a, a, cap, 6, bins, state)
    if b < 0:
        if _random(state) < 0.9 or not may_open:
            return 0
        b = _below(state, len(bins.load))
        if bins.count[b] > 0:
            return 0
    move[0, 0], move[0, 1] = p, b
    return 1


@compiled_loop
def _swap(p: int, cap: float, items: Items, bins: Bins, move: Ints, state: NDArray[np.uint64]) -> int:
    """With a partition about as fast, mostly."""
    place = items.rank[p] + 1 + _below(state, 12) - 6
    if _random(state) < 0.25:
        place = _below(state, len(items.speed))
    if place < 0 or place >= len(items.speed):
        return 0
    q = items.by_speed[place]
    a, b = bins.of[p], bins.of[q]
    more = items.speed[q] - items.speed[p]
    if a == b or (bins.load[a] + more > cap and bins.count[a] > 1) or (bins.load[b] - more > cap and bins.count[b] > 1):
        return 0
    move[0, 0], move[0, 1], move[1, 0], move[1, 1] = p, b, q, a
    return 2


@compiled_loop
def _eject(p: int, cap: float, may_open: bool, items: Items, bins: Bins, move: Ints, state: NDArray[np.uint64]) -> int:
    """`p` takes the place of q, which goes home, where p was, where there is room, or where a third one makes room."""
    q = _below(state, len(items.speed))
    home = items.home[p]
    if home >= 0 and home != bins.of[p] and bins.count[home] > 0 and _random(state) < _INTO_HOME:
        q = bins.head[home]
        for _ in range(_below(state, bins.count[home])):
            q = bins.after[q]
    a, b = bins.of[p], bins.of[q]
    if a == b or bins.load[b] + items.speed[p] - items.speed[q] > cap:
        return 0
    c = items.home[q]
    if c < 0 or _random(state) >= 0.35:
        if _random(state) < 0.3:
            if bins.load[a] - items.speed[p] + items.speed[q] > cap and bins.count[a] > 1:
                return 0
            move[0, 0], move[0, 1], move[1, 0], move[1, 1] = p, b, q, a
            return 2
        c = _roomy(items.speed[q], a, b, cap, 12, bins, state)
        if c < 0:
            c = _below(state, len(bins.load))
    if c == a or c == b:
        return 0
    move[0, 0], move[0, 1], move[1, 0], move[1, 1] = p, b, q, c
    if bins.count[c] == 0:
        return 2 if may_open else 0
    if bins.load[c] + items.speed[q] <= cap:
        return 2
    third = bins.head[c]
    for _ in range(_below(state, bins.count[c])):
        third = bins.after[third]
    if bins.load[c] + items.speed[q] - items.speed[third] > cap:
        return 0
    if bins.load[a] - items.speed[p] + items.speed[third] > cap:
        return 0
    move[2, 0], move[2, 1] = third, a
    return 3


@compiled_loop
def _empty(a: int, items: Items, bins: Bins, move: Ints, state: NDArray[np.uint64]) -> int:
    """Each partition of `a` to the tightest of a sample of consumers."""
    if bins.count[a] > 8 or bins.fixed[a] > 0.0 or (bins.load[a] > 0.75 and _random(state) < 0.8):
        return 0
    count = 0
    p = bins.head[a]
    while p >= 0:
        best, least = -1, 1e18
        for _ in range(12):
            b = _below(state, len(bins.load))
            if b == a or bins.count[b] == 0:
                continue
            slack = 1.01 - bins.load[b] - items.speed[p]
            for i in range(count):
                if move[i, 1] == b:
                    slack -= items.speed[move[i, 0]]
            score = slack + (0.0 if items.home[p] == b else 0.3)
            if slack >= 0.0 and score < least:
                best, least = b, score
        if best < 0:
            return 0
        move[count, 0], move[count, 1] = p, best
        count += 1
        p = bins.after[p]
    return count


@compiled_loop
def _reopen(b: int, items: Items, bins: Bins, move: Ints) -> int:
    """A consumer out of use gets what it reads now."""
    if b < 0 or bins.count[b] > 0:
        return 0
    count = 0
    for p in range(len(items.speed)):
        if items.home[p] == b and count < LIMIT:
            move[count, 0], move[count, 1] = p, b
            count += 1
    return count


@compiled_loop
def _drawn(items: Items, bins: Bins, state: NDArray[np.uint64]) -> int:
    """A partition to begin a move with."""
    p = _below(state, len(items.speed))
    if _random(state) < _BIAS:
        for _ in range(_DRAWS):
            if items.home[p] != bins.of[p] or bins.load[bins.of[p]] > 1.0 + 1e-9:
                break
            p = _below(state, len(items.speed))
    return p


@compiled_loop
def _touch(b: int, touched: Ints, old: Floats, count: int, bins: Bins) -> int:
    """Remember consumer `b` as it is, unless it is remembered."""
    for i in range(count):
        if touched[i] == b:
            return count
    touched[count] = b
    old[count, 0], old[count, 1], old[count, 2] = bins.load[b], bins.count[b], bins.energy[b]
    return count + 1


@compiled_loop
def anneal(items: Items, bins: Bins, terms: Terms, budget: int, seed: int, work: Work) -> None:
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
        _random(state)
    bins.head[:] = -1
    for p in range(len(bins.of)):
        b = bins.of[p]
        bins.of[p] = -1
        _put(p, b, bins)
    hot = _STRICT_HEAT if terms.strict else _COOLING[0]
    lenience = 0.0 if terms.strict else _LENIENCE
    heat, cap, overload, fade = hot, 1.0 + lenience, _NEVER, _FADE
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
        kind = _random(state)
        p = _drawn(items, bins, state)
        may_open = used < terms.most or bins.count[bins.of[p]] == 1
        if kind < _GO_HOME:
            count = _go_home(p, cap, may_open, items, bins, move)
        elif kind < _RELOCATE:
            count = _relocate(p, cap, may_open, items, bins, move, state)
        elif kind < _SWAP:
            count = _swap(p, cap, items, bins, move, state)
        elif kind < _EJECT:
            count = _eject(p, cap, may_open, items, bins, move, state)
        elif kind < _EMPTY:
            count = _empty(bins.of[p], items, bins, move, state)
            done += 2 * count
        else:
            count = _reopen(items.home[p], items, bins, move) if used < terms.most else 0
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
        if change > 0.0 and (used > max(terms.most, was_used) or _random(state) >= math.exp(-change / heat)):
            for i in range(count - 1, -1, -1):
                _put(move[i, 0], move[i, 1], bins)
            for i in range(several):
                b = touched[i]
                bins.load[b], bins.count[b], bins.energy[b] = old[i, 0], int(old[i, 1]), old[i, 2]
            used = was_used
