"""Exact mean and percentiles of many latencies without holding them one by one.

One replay is some hundred million samples. They lie on a few ten thousand lines, so order statistics are found by
counting, line by line, how many samples are at most some value.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgs_core.simulation.latency import Stretch

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Latencies of all samples of one replay, seconds.

    Attributes:
        delayed: how many of them are above 0.
        mean_s, p95_s, p99_s: of all; None without samples.
        p90_delayed_s: of those above 0; None without any.
    """

    samples: int
    delayed: int
    mean_s: float | None
    p95_s: float | None
    p99_s: float | None
    p90_delayed_s: float | None

    @property
    def delayed_share(self) -> float | None:
        """Of all samples; None without samples."""
        return self.delayed / self.samples if self.samples else None


class LatencyPool:
    """Percentiles of the samples of many stretches, found without making or sorting the samples."""

    def __init__(self, stretches: Iterable[Stretch]) -> None:
        table = np.array(list(stretches), dtype=np.float64).reshape(-1, 3)
        first, slope, count = table[:, 0], table[:, 1], table[:, 2].astype(np.int64)
        self._size = int(count.sum())
        # Latency falls below 0 or rises above it once on a line: the samples above 0 are a run of it
        not_late = _at_most(first, slope, count, 0.0)
        late = count - not_late
        some = late > 0
        self._first, self._slope, self._count = first[some], slope[some], count[some]
        self._late = late[some]
        self._delayed = int(self._late.sum())

    def summary(self) -> LatencySummary:
        """Mean, percentiles and share."""
        return LatencySummary(
            self._size,
            self._delayed,
            self._mean(),
            self.percentile(95),
            self.percentile(99),
            self.percentile(90, delayed_only=True),
        )

    def percentile(self, per_cent: float, *, delayed_only: bool = False) -> float | None:
        """Between the two samples that it falls between, in proportion; None without samples."""
        size = self._delayed if delayed_only else self._size
        if size == 0:
            return None
        place = (size - 1) * per_cent / 100
        below = int(place)
        rank = below + (self._size - self._delayed if delayed_only else 0)
        low = self._sample(rank)
        return low + (self._next(rank, low) - low) * (place - below) if place > below else low

    def _mean(self) -> float | None:
        if self._size == 0:
            return None
        # Of a falling line the first samples are above 0, of a rising one the last
        begin = np.where(self._slope > 0, self._count - self._late, 0)
        end = begin + self._late
        total = self._late * self._first + self._slope * ((end - 1) * end - (begin - 1) * begin) / 2
        return float(total.sum()) / self._size

    def _sample(self, rank: int) -> float:
        """The sample of this rank, 0 being the least: the lowest value that more than `rank` samples do not exceed."""
        on_time = self._size - self._delayed
        if rank < on_time:
            return 0.0
        low, high = 0, int(np.float64(self._greatest()).view(np.int64))
        while low < high:  # positive floats are ordered as the integers of the same bits
            middle = (low + high) // 2
            value = float(np.int64(middle).view(np.float64))
            if on_time + self._late_at_most(value) > rank:
                high = middle
            else:
                low = middle + 1
        return float(np.int64(low).view(np.float64))

    def _next(self, rank: int, sample: float) -> float:
        """The sample that follows `sample`, which has this rank and is not the last."""
        at_most = _at_most(self._first, self._slope, self._count, sample)
        if self._size - int(self._count.sum()) + int(at_most.sum()) > rank + 1:
            return sample
        more = at_most < self._count
        index = np.where(self._slope > 0, at_most, self._count - at_most - 1)
        return float(_at(self._first[more], self._slope[more], index[more]).min())

    def _late_at_most(self, value: float) -> int:
        at_most = _at_most(self._first, self._slope, self._count, value)
        return int(at_most.sum()) - int((self._count - self._late).sum())

    def _greatest(self) -> float:
        ends = _at(self._first, self._slope, self._count - 1)
        return float(max(self._first.max(), ends.max()))


def _at(first: Floats, slope: Floats, index: Counts) -> Floats:
    """Sample `index` of each line, to the bit as if computed alone."""
    return first + index * slope


def _at_most(first: Floats, slope: Floats, count: Counts, value: float) -> Counts:
    """How many samples of each line are at most `value`."""
    rising = slope > 0
    # a falling line is counted from its end
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        crossing = np.nan_to_num((value - first) / slope, nan=0.0, posinf=4e18, neginf=-4e18)
    falling = np.where(slope == 0, np.where(first > value, count, 0), np.ceil(crossing))
    guess = np.clip(np.where(rising, np.floor(crossing) + 1, falling), 0, count).astype(np.int64)
    border = _border(first, slope, count, value, guess)
    return np.where(rising, border, count - border)


def _border(first: Floats, slope: Floats, count: Counts, value: float, guess: Counts) -> Counts:
    """Where the samples of each line change sides of `value`: the first index on the other side than those before.

    The guess is exact but for rounding; it is moved until it is right for the samples as they are computed.
    """
    rising = slope > 0

    def before(index: Counts) -> Any:
        """Whether a sample lies on the side where its line begins."""
        at = _at(first, slope, index)
        return np.where(rising, at <= value, at > value)

    low, high = np.zeros_like(count), count.copy()
    for shift in (0, 1, 2):
        near, far = np.clip(guess - shift, 0, count), np.clip(guess + shift, 0, count)
        low = np.where((near > low) & ((near == 0) | before(near - 1)), near, low)
        high = np.where((far < high) & ~before(np.minimum(far, count - 1)), far, high)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        inside = before(np.minimum(middle, np.maximum(count - 1, 0)))
        low = np.where(open_ & inside, middle + 1, low)
        high = np.where(open_ & ~inside, middle, high)
    return low
