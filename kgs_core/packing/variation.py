"""How much each partition's speed changes from one packing to the next, as its past and the others' tell."""

import math
from collections.abc import Mapping

from kgs_core.model import BytesPerSecond, TopicPartition, WriteSpeeds

MEMORY = 0.95
"""What a change counts after each further one."""
_OTHERS = 20.0
"""So many changes of its own weigh as much as what all partitions have done."""


class Variation:
    """Squared changes of the past, the newer ones more; every partition's own, mixed with the mean of all.

    A partition with a short past is taken for like the others. Changes from or to a standstill are left out: they say
    more of the bound at 0 than of the partition.
    """

    def __init__(self) -> None:
        self._last: WriteSpeeds = {}
        self._own: dict[TopicPartition, tuple[float, float]] = {}

    def update(self, speeds: WriteSpeeds) -> None:
        """Take the speeds of the next packing."""
        last, own = self._last, self._own
        for partition, speed in speeds.items():
            before = last.get(partition)
            if before and speed:
                weight, squares = own.get(partition, (0.0, 0.0))
                own[partition] = weight * MEMORY + 1.0, squares * MEMORY + (speed - before) ** 2
        self._last = speeds

    def deviations(self) -> Mapping[TopicPartition, BytesPerSecond]:
        """Standard deviation of the next change of every partition, bytes/s; empty before the first change."""
        if not self._own:
            return {}
        common = math.fsum(s for _, s in self._own.values()) / math.fsum(w for w, _ in self._own.values())
        past = {p: self._own.get(p, (0.0, 0.0)) for p in self._last}
        return {p: math.sqrt((s + _OTHERS * common) / (w + _OTHERS)) for p, (w, s) in past.items()}
