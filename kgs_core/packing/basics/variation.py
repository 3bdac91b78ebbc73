"""Variation of each partition's speed from one packing to the next, as its past and the others' tell."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from kgs_core.model import BytesPerSecond, TopicPartition, WriteSpeeds

MEMORY = 0.95
"""What a squared change counts after each further one."""
TREND_MEMORY = 0.8
"""The same for a change: a trend lasts less long than a partition's ways."""
_OTHERS = 20.0
"""So many changes of its own weigh as much as what all partitions have done."""
_DOUBT = 3.0
"""A trend is believed in so far as it is above what chance makes of none, by so many standard deviations."""


class _Past(NamedTuple):
    """Sums over the changes of one partition: weights, squares; weights, changes and squared weights for the trend."""

    weight: float = 0.0
    squares: float = 0.0
    recent: float = 0.0
    changes: float = 0.0
    chance: float = 0.0

    def followed(self, change: float, expected: float) -> "_Past":
        return _Past(
            self.weight * MEMORY + 1.0,
            self.squares * MEMORY + (change - expected) ** 2,
            self.recent * TREND_MEMORY + 1.0,
            self.changes * TREND_MEMORY + change,
            self.chance * TREND_MEMORY**2 + 1.0,
        )


class Variation:
    """Squared changes of the past, the newer ones more; every partition's own, mixed with the mean of all.

    A partition with a short past is taken for like the others. Changes from or to a standstill are left out: they say
    more of the bound at 0 than of the partition. What was expected of a change does not count as variation: a trend
    that all share in proportion to their speeds, as of day and night, and each one's own. Both are shrunk towards 0,
    by as much as chance alone makes of changes without any trend, so that of a random walk next to nothing is expected.

    References:
        James and Stein 1961, "Estimation with quadratic loss", positive part.
    """

    def __init__(self) -> None:
        self._last: WriteSpeeds = {}
        self._own: dict[TopicPartition, _Past] = {}
        self._drifts: dict[TopicPartition, float] = {}

    def update(self, speeds: WriteSpeeds) -> None:
        """Take the speeds of the next packing."""
        last, own = self._last, self._own
        for partition, speed in speeds.items():
            before = last.get(partition)
            if before and speed:
                past = own.get(partition, _Past())
                own[partition] = past.followed(speed - before, self._drifts.get(partition, 0.0))
        self._last = speeds
        self._drifts = self._expected()

    def deviations(self) -> Mapping[TopicPartition, BytesPerSecond]:
        """Standard deviation of the next change of every partition, bytes/s; empty before the first change."""
        if not self._own:
            return {}
        common = self._common()
        past = {p: self._own.get(p, _Past()) for p in self._last}
        return {p: math.sqrt((o.squares + _OTHERS * common) / (o.weight + _OTHERS)) for p, o in past.items()}

    def drifts(self) -> Mapping[TopicPartition, BytesPerSecond]:
        """Expected next change of the partitions that have a past, bytes/s."""
        return self._drifts

    def _common(self) -> float:
        return math.fsum(o.squares for o in self._own.values()) / math.fsum(o.weight for o in self._own.values())

    def _expected(self) -> dict[TopicPartition, float]:
        past = {p: self._own[p] for p in self._last if p in self._own}
        total = math.fsum(self._last[p] for p in past)
        if not total:
            return {}
        mean = {p: o.changes / o.recent for p, o in past.items()}
        chance = self._common() * math.fsum(o.chance / o.recent**2 for o in past.values())
        together = math.fsum(mean.values())
        growth = _shrunk(together**2, chance, 1) * together / total
        rest = {p: m - growth * self._last[p] for p, m in mean.items()}
        share = _shrunk(math.fsum(r * r for r in rest.values()), chance, len(rest))
        return {p: max(-self._last[p], growth * self._last[p] + share * r) for p, r in rest.items()}


def _shrunk(found: float, chance: float, number: int) -> float:
    """Share that is believed of what `number` trends, squared, add up to."""
    return max(0.0, 1.0 - (1.0 + _DOUBT * math.sqrt(2.0 / number)) * chance / found) if found else 0.0
