"""Rates of one thing, many of them: mode, percentiles, histogram."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

PERCENTILES = (5, 25, 50, 75, 95)
_GRID = 512


@dataclass(frozen=True, slots=True)
class RateDistribution:
    """Rates in one unit, whichever it is.

    Attributes:
        mode: the most usual rate.
        percentiles: per cent -> rate, for `PERCENTILES`.
        bins: (from, to, how many), of equal width, ascending.
    """

    mode: float
    percentiles: dict[int, float]
    bins: tuple[tuple[float, float, int], ...]


def spread(rates: Sequence[float], bins: int = 12) -> RateDistribution:
    """How rates are spread.

    Args:
        rates: at least one, finite, in any order.
        bins: how many bars the histogram has at most.

    Raises:
        ValueError: no rates.
    """
    if not rates:
        raise ValueError("no rates")
    ordered = sorted(rates)
    return RateDistribution(mode(ordered), {p: percentile(ordered, p) for p in PERCENTILES}, _histogram(ordered, bins))


def percentile(ordered: Sequence[float], per_cent: float) -> float:
    """The value below which `per_cent` of an ascending sequence lie, interpolated between neighbours."""
    place = (len(ordered) - 1) * per_cent / 100
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def mode(ordered: Sequence[float]) -> float:
    """Where the density of an ascending sequence is highest, estimated with a Gaussian kernel.

    References:
        Landau 2022, Fig. 10 (a density plot). Silverman 1986, "Density Estimation", eq. 3.31, for the width.
    """
    middle = fmean(ordered)
    deviation = math.sqrt(fmean([(rate - middle) ** 2 for rate in ordered]))
    quartiles = (percentile(ordered, 75) - percentile(ordered, 25)) / 1.34
    width = 0.9 * (min(deviation, quartiles) or deviation) * len(ordered) ** -0.2
    # Below this the values are one as far as floats can tell
    if width <= 1e-9 * abs(ordered[-1]):
        return percentile(ordered, 50)

    def density(at: float) -> float:
        return sum(math.exp(-(((at - rate) / width) ** 2) / 2) for rate in ordered)

    step = (ordered[-1] - ordered[0]) / _GRID
    return max((min(ordered[-1], ordered[0] + i * step) for i in range(_GRID + 1)), key=density)


def _histogram(ordered: Sequence[float], bins: int) -> tuple[tuple[float, float, int], ...]:
    low, high = ordered[0], ordered[-1]
    width = (high - low) / bins
    if width <= 0:
        return ((low, high, len(ordered)),)
    counts = [0] * bins
    for rate in ordered:
        counts[min(bins - 1, int((rate - low) / width))] += 1
    return tuple((low + i * width, low + (i + 1) * width, count) for i, count in enumerate(counts))
