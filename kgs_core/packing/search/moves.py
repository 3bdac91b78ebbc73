"""The kinds of changes that the search tries: each fills `move` with partitions and where they go, and counts them."""

import numpy as np
from numpy.typing import NDArray

from kgs_core.accel.compiled import compiled_loop
from kgs_core.packing.search.state import LIMIT, Ints, MovingPartitions, SearchBins

_BIAS, _DRAWS = 0.65, 4
"""How often, and from how many, a partition is sought that has moved or is overloaded: most others are well placed."""
_INTO_HOME = 0.8
"""How often one that has moved is put in the place of one that reads where it comes from."""
_AT_RANDOM, _LUCK = 0.5, 0.5
"""Of two that share out anew: how often the second is any and no home; what chance weighs."""
_ALL, _SOME = 3, 2
"""What each of two puts in: up to so many besides the first where that is all or nearly, else fewer."""


@compiled_loop
def random(state: NDArray[np.uint64]) -> float:
    """In [0, 1), by xorshift64 (Marsaglia 2003)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return float(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled_loop
def below(state: NDArray[np.uint64], count: int) -> int:
    """One of 0 ... count - 1."""
    return int(random(state) * count)


@compiled_loop
def _roomy(
    speed: float, not_a: int, not_b: int, cap: float, tries: int, bins: SearchBins, state: NDArray[np.uint64]
) -> int:
    """A consumer in use with room for `speed`, drawn; -1: none in so many tries."""
    for _ in range(tries):
        b = below(state, len(bins.load))
        if bins.count[b] > 0 and b != not_a and b != not_b and bins.load[b] + speed <= cap:
            return b
    return -1


@compiled_loop
def go_home(p: int, cap: float, may_open: bool, items: MovingPartitions, bins: SearchBins, move: Ints) -> int:
    """To where it is now."""
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
def relocate(
    p: int, cap: float, may_open: bool, items: MovingPartitions, bins: SearchBins, move: Ints, state: NDArray[np.uint64]
) -> int:
    """To one with room, of a few drawn; where none has, now and then to one out of use."""
    a = bins.of[p]
    b = _roomy(items.speed[p], a, a, cap, 6, bins, state)
    if b < 0:
        if random(state) < 0.9 or not may_open:
            return 0
        b = below(state, len(bins.load))
        if bins.count[b] > 0:
            return 0
    move[0, 0], move[0, 1] = p, b
    return 1


@compiled_loop
def swap(p: int, cap: float, items: MovingPartitions, bins: SearchBins, move: Ints, state: NDArray[np.uint64]) -> int:
    """With a partition about as fast, mostly."""
    place = items.rank[p] + 1 + below(state, 12) - 6
    if random(state) < 0.25:
        place = below(state, len(items.speed))
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
def eject(
    p: int, cap: float, may_open: bool, items: MovingPartitions, bins: SearchBins, move: Ints, state: NDArray[np.uint64]
) -> int:
    """`p` takes the place of q, which goes home, where p was, where there is room, or where a third one makes room."""
    q = below(state, len(items.speed))
    home = items.home[p]
    if home >= 0 and home != bins.of[p] and bins.count[home] > 0 and random(state) < _INTO_HOME:
        q = bins.head[home]
        for _ in range(below(state, bins.count[home])):
            q = bins.after[q]
    a, b = bins.of[p], bins.of[q]
    if a == b or bins.load[b] + items.speed[p] - items.speed[q] > cap:
        return 0
    c = items.home[q]
    if c < 0 or random(state) >= 0.35:
        if random(state) < 0.3:
            if bins.load[a] - items.speed[p] + items.speed[q] > cap and bins.count[a] > 1:
                return 0
            move[0, 0], move[0, 1], move[1, 0], move[1, 1] = p, b, q, a
            return 2
        c = _roomy(items.speed[q], a, b, cap, 12, bins, state)
        if c < 0:
            c = below(state, len(bins.load))
    if c == a or c == b:
        return 0
    move[0, 0], move[0, 1], move[1, 0], move[1, 1] = p, b, q, c
    if bins.count[c] == 0:
        return 2 if may_open else 0
    if bins.load[c] + items.speed[q] <= cap:
        return 2
    third = bins.head[c]
    for _ in range(below(state, bins.count[c])):
        third = bins.after[third]
    if bins.load[c] + items.speed[q] - items.speed[third] > cap:
        return 0
    if bins.load[a] - items.speed[p] + items.speed[third] > cap:
        return 0
    move[2, 0], move[2, 1] = third, a
    return 3


@compiled_loop
def _some(b: int, p: int, each: int, count: int, bins: SearchBins, move: Ints, state: NDArray[np.uint64]) -> int:
    """What `b` reads, but for `p`, after the first `count` of `move`; where that is much, neighbours in the list."""
    q = bins.head[b]
    for _ in range(below(state, max(1, bins.count[b] - each + 1))):
        q = bins.after[q]
    most = count + each
    while q >= 0 and count < most:
        if q != p:
            move[count, 0] = q
            count += 1
        q = bins.after[q]
    return count


@compiled_loop
def share_out(
    p: int, cap: float, items: MovingPartitions, bins: SearchBins, move: Ints, state: NDArray[np.uint64]
) -> int:
    """What two consumers read, shared out anew: of all ways that fit, one that leaves much at home, with some luck.

    Where many consumers are full to the brim, hardly another change fits.
    """
    a, b = bins.of[p], items.home[p]
    if b < 0 or b == a or random(state) < _AT_RANDOM:
        b = bins.of[below(state, len(items.speed))]
        if b == a:
            return 0
    move[0, 0] = p
    each = _ALL if bins.count[a] + bins.count[b] <= 2 * _ALL + 1 else _SOME
    mine = _some(a, p, each, 1, bins, move, state)
    count = _some(b, p, each, mine, bins, move, state)
    here = (1 << mine) - 1  # bit i: move[i] is with a
    side, best, most, at_home = here, here, -1e18, 0.0
    load_a, load_b = bins.load[a], bins.load[b]
    for turn in range(1, 1 << count):  # in the order of a Gray code: one changes sides at a time
        i = 0
        while not (turn >> i) & 1:
            i += 1
        q = move[i, 0]
        side ^= 1 << i
        speed = items.speed[q] if (side >> i) & 1 else -items.speed[q]
        load_a += speed
        load_b -= speed
        if items.home[q] == a:
            at_home += speed
        elif items.home[q] == b:
            at_home -= speed
        if load_a <= cap and load_b <= cap and side != here:
            score = at_home + _LUCK * random(state)
            if score > most:
                best, most = side, score
    found = 0
    for i in range(count):
        if ((best ^ here) >> i) & 1:
            move[found, 0], move[found, 1] = move[i, 0], b if i < mine else a
            found += 1
    return found


@compiled_loop
def empty(a: int, items: MovingPartitions, bins: SearchBins, move: Ints, state: NDArray[np.uint64]) -> int:
    """Each partition of `a` to the tightest of a sample of consumers."""
    if bins.count[a] > 8 or bins.fixed[a] > 0.0 or (bins.load[a] > 0.75 and random(state) < 0.8):
        return 0
    count = 0
    p = bins.head[a]
    while p >= 0:
        best, least = -1, 1e18
        for _ in range(12):
            b = below(state, len(bins.load))
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
def reopen(b: int, items: MovingPartitions, bins: SearchBins, move: Ints) -> int:
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
def drawn(items: MovingPartitions, bins: SearchBins, state: NDArray[np.uint64]) -> int:
    """A partition to begin a move with."""
    p = below(state, len(items.speed))
    if random(state) < _BIAS:
        for _ in range(_DRAWS):
            if items.home[p] != bins.of[p] or bins.load[bins.of[p]] > 1.0 + 1e-9:
                break
            p = below(state, len(items.speed))
    return p
