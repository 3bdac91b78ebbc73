"""Which consumers run and read nothing."""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice

from kgs_core.model import ConsumerId


@dataclass(frozen=True, slots=True)
class Numbers:
    """Consumer numbers that a spare's is chosen from.

    Attributes:
        standing: spares of the Target that stands.
        joined: consumers that can be given partitions.
        barred: numbers that must not be used, because every start fails or something of theirs may still live.
        highest: the last number that has a queue.
    """

    standing: Collection[ConsumerId]
    joined: Collection[ConsumerId]
    barred: Collection[ConsumerId]
    highest: int

    def usable(self) -> frozenset[ConsumerId]:
        """Spares that stand and may stay."""
        return frozenset(self.standing) - frozenset(self.barred)


def choose_spares(used: Collection[ConsumerId], count: int, numbers: Numbers) -> tuple[ConsumerId, ...]:
    """`count` consumers beside `used`, ascending; fewer where the numbers are used up.

    Joined ones first, spares before those that a change has emptied; then spares that are being started; then the
    lowest numbers that are free.
    """
    taken = frozenset(used) | frozenset(numbers.barred)
    standing = numbers.usable()
    candidates = sorted(
        (standing | frozenset(numbers.joined)) - taken,
        key=lambda c: (c not in numbers.joined, c not in standing, c),
    )
    not_free = taken | frozenset(numbers.joined) | standing
    new = (ConsumerId(n) for n in range(1, numbers.highest + 1) if n not in not_free)
    chosen = candidates[:count]
    return tuple(sorted([*chosen, *islice(new, count - len(chosen))]))
