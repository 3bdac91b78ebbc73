"""Which consumers run and read nothing."""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import count, islice

from kgs_core.model import ConsumerId


@dataclass(frozen=True, slots=True)
class Numbers:
    """Consumer numbers that a spare's is chosen from.

    Attributes:
        standing: spares of the Target that stands.
        joined: consumers that can be given partitions.
        unusable: numbers that must not be used, because every start fails or something of theirs may still live.
    """

    standing: Collection[ConsumerId]
    joined: Collection[ConsumerId]
    unusable: Collection[ConsumerId]

    def usable(self) -> frozenset[ConsumerId]:
        """Spares that stand and may stay."""
        return frozenset(self.standing) - frozenset(self.unusable)


def choose_spares(used: Collection[ConsumerId], wanted: int, numbers: Numbers) -> tuple[ConsumerId, ...]:
    """`wanted` consumers beside `used`, ascending.

    Joined ones first, spares before those that a change has emptied; then spares that are being started; then the
    lowest numbers that are free.
    """
    taken = frozenset(used) | frozenset(numbers.unusable)
    standing = numbers.usable()
    candidates = sorted(
        (standing | frozenset(numbers.joined)) - taken,
        key=lambda c: (c not in numbers.joined, c not in standing, c),
    )
    not_free = taken | frozenset(numbers.joined) | standing
    new = (ConsumerId(n) for n in count(1) if n not in not_free)
    chosen = candidates[:wanted]
    return tuple(sorted([*chosen, *islice(new, wanted - len(chosen))]))
