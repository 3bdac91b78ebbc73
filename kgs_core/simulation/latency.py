"""Latency model: how late data is read, for any way to share out partitions."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, WriteSpeeds

UNIT = 100.0
"""C in the model; a sample is one hundredth of what a consumer of capacity C reads in a second."""


class Stretch(NamedTuple):
    """Samples of latency that lie on a line: sample i, i < `size`, is max(0, first + i * slope), in seconds."""

    first: float
    slope: float
    size: int


@dataclass(frozen=True, slots=True)
class LatencySettings:
    """Settings of the latency model.

    Attributes:
        read_speed: what a consumer reads flat out, where C is 100.
        interval_s: how long a measurement lasts.
        pause_s: how long a moved partition is unread.
    """

    read_speed: float = 133.0
    interval_s: float = 30.0
    pause_s: float = 5.0


class LatencyModel:
    """Replays assignments, one per measurement.

    For each consumer: K is the speed of the partitions that it kept, M of those that it has now and had not before;
    it reads at r_K and r_M. Kept bytes i = 0 ... floor(30 K) - 1 have latency max(0, b + i (1/r_K - 1/K)), b being the
    last one recorded for this consumer; moved ones max(0, 5 + i (1/r_M - 1/M)), but at the first measurement, when all
    is new. M = 0: r_K = 133; else r_K = min(133, K) and r_M = 133 - r_K.

    Departs from the model where that leaves nothing for the moved ones (K >= 133: no packer gives such a consumer any
    more): kept and moved share 133 in proportion to their speeds, for the formula would divide by 0 (docs/adr/0007).
    """

    def __init__(self, settings: LatencySettings, capacity: BytesPerSecond) -> None:
        """Nothing replayed yet; `capacity` is C in the unit of the speeds."""
        self._settings = settings
        self._factor = UNIT / capacity
        self._last: dict[ConsumerId, float] = {}
        self._before: Assignment | None = None

    def take(self, speeds: WriteSpeeds, assignment: Assignment) -> list[Stretch]:
        """What is recorded in the next measurement; all that is never late comes as one stretch."""
        before, self._before = self._before, assignment
        if before is None:
            return []
        kept: dict[ConsumerId, list[float]] = {}
        moved: dict[ConsumerId, list[float]] = {}
        for partition, consumer in assignment.items():
            share = kept if before.get(partition) == consumer else moved
            share.setdefault(consumer, []).append(speeds[partition])
        recorded = []
        for consumer in sorted(kept.keys() | moved.keys()):
            k, m = self._speed(kept.get(consumer, ())), self._speed(moved.get(consumer, ()))
            recorded += self._record(consumer, k, m)
        return _merged(recorded)

    def _speed(self, speeds: Iterable[float]) -> float:
        return math.fsum(speeds) * self._factor

    def _record(self, consumer: ConsumerId, kept: float, moved: float) -> list[Stretch]:
        flat_out = self._settings.read_speed
        read_kept = flat_out if moved == 0 else min(flat_out, kept)
        read_moved = flat_out - read_kept
        if moved > 0 and read_moved <= 0:
            read_kept = flat_out * kept / (kept + moved)
            read_moved = flat_out - read_kept
        found = []
        if (count := math.floor(self._settings.interval_s * kept)) > 0:
            found.append(Stretch(self._last.get(consumer, 0.0), 1 / read_kept - 1 / kept, count))
        if (count := math.floor(self._settings.interval_s * moved)) > 0:
            found.append(Stretch(self._settings.pause_s, 1 / read_moved - 1 / moved, count))
        if found:
            first, slope, size = found[-1]
            self._last[consumer] = max(0.0, first + (size - 1) * slope)
        return found


def _merged(stretches: list[Stretch]) -> list[Stretch]:
    late = [stretch for stretch in stretches if stretch.first > 0 or stretch.slope > 0]
    on_time = sum(stretch.size for stretch in stretches) - sum(stretch.size for stretch in late)
    return [*late, Stretch(0.0, 0.0, on_time)] if on_time else late
