"""Segment files of a partition on a broker's disk: the truth that measured speeds are compared with."""

import threading
import time
from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from kgs_core.model import TopicPartition

_EVERY_S = 0.05


def segment_bytes(data: Path, tp: TopicPartition) -> int:
    """Size of the segment files of one partition in a broker's data folder, without indexes."""
    return sum(file.stat().st_size for file in (data / f"{tp.topic}-{tp.partition}").glob("*.log"))


class SegmentGrowth:
    """Records sizes while the block runs, 20 times a second; for partitions from which nothing is deleted."""

    def __init__(self, folders: Mapping[TopicPartition, Path]) -> None:
        """Which partitions, and the data folder of the broker that has each."""
        self._folders = folders
        self._seen: dict[TopicPartition, list[tuple[float, int]]] = {tp: [] for tp in folders}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="segment-growth", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def bytes_at(self, tp: TopicPartition, time_s: float) -> float:
        """Size at a moment of `time.monotonic`, interpolated; that of the first or last look outside of them."""
        seen = list(self._seen[tp])
        after = bisect_left(seen, (time_s, 0))
        if after in (0, len(seen)):
            return seen[0 if after == 0 else -1][1]
        (t0, size0), (t1, size1) = seen[after - 1], seen[after]
        return size0 + (size1 - size0) * (time_s - t0) / (t1 - t0)

    def speed(self, tp: TopicPartition, from_s: float, to_s: float) -> float:
        """Bytes/s between two moments."""
        return (self.bytes_at(tp, to_s) - self.bytes_at(tp, from_s)) / (to_s - from_s)

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            for tp, folder in self._folders.items():
                self._seen[tp].append((time.monotonic(), segment_bytes(folder, tp)))
