"""The consumers of a group as they are, and which of them run and read nothing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import count, islice

from kgs_core.model import Assignment, ConsumerId
from kgs_core.planning.placement import Readers


@dataclass(frozen=True, slots=True)
class Group:
    """The consumers as they are.

    Attributes:
        current: who reads what; without partitions that nobody reads.
        spares: consumers that run and read nothing.
        quarantined: numbers that must not be used, because every start fails or something of theirs may still live;
            what they read is placed elsewhere.
        readers: who is there to read; None: not known, so what has no consumer is packed as if all were there.
        standing: spares of the Target that stands, joined or not.
        classes: class of each consumer that has one.
        zones: zone of each consumer, as far as it is known.
    """

    current: Assignment = field(default_factory=dict)
    spares: frozenset[ConsumerId] = frozenset()
    quarantined: frozenset[ConsumerId] = frozenset()
    readers: Readers | None = None
    standing: frozenset[ConsumerId] = frozenset()
    classes: Mapping[ConsumerId, str] = field(default_factory=dict)
    zones: Mapping[ConsumerId, str] = field(default_factory=dict)

    @property
    def running(self) -> frozenset[ConsumerId]:
        """Who runs, or is being started, and may be used."""
        return (self.spares | self.standing | frozenset(self.current.values())) - self.quarantined

    @property
    def joined(self) -> frozenset[ConsumerId]:
        """Consumers that can be given partitions."""
        return self.running if self.readers is None else self.readers.joined

    @property
    def usable_spares(self) -> frozenset[ConsumerId]:
        """Spares that stand and may stay."""
        return self.standing - self.quarantined

    @property
    def had(self) -> Assignment:
        """Who has each partition, or had it last."""
        return self.current if self.readers is None else self.readers.had

    def choose_spares(self, used: Collection[ConsumerId], wanted: int) -> tuple[ConsumerId, ...]:
        """`wanted` consumers beside `used`, ascending.

        Joined ones first, spares before those that a change has emptied; then spares that are being started; then the
        lowest numbers that are free.
        """
        taken, joined, standing = frozenset(used) | self.quarantined, self.joined, self.usable_spares
        candidates = sorted((standing | joined) - taken, key=lambda c: (c not in joined, c not in standing, c))
        not_free = taken | joined | standing
        new = (ConsumerId(n) for n in count(1) if n not in not_free)
        chosen = candidates[:wanted]
        return tuple(sorted([*chosen, *islice(new, wanted - len(chosen))]))
