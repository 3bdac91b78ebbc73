"""Rates of one thing, many of them: mode, percentiles, histogram."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PERCENTILES = (5, 25, 50, 75, 95)
_GRID = 512


@dataclass(frozen=True, slots=True)
class RateDistribution:
    """Rates in one unit, whichever it is.

    Attributes:
        percentiles: per cent -> rate, for `PERCENTILES`.
        bins: (from, to, how many), of equal width, ascending.
    """

    mode: float
    percentiles: dict[int, float]
    bins: tuple[tuple[float, float, int], ...]


def spread(rates: Sequence[float], bins: int = 12) -> RateDistribution:
    """How rates are spread: finite ones, none negative, in any order. Raises `ValueError` if there are none."""
    if not rates:
        raise ValueError("no rates")
    found = np.asarray(rates, np.float64)
    percentiles = dict(zip(PERCENTILES, np.percentile(found, PERCENTILES).tolist(), strict=True))
    return RateDistribution(mode(found), percentiles, _histogram(found, bins))


def mode(rates: NDArray[np.float64]) -> float:
    """Where the density of rates, in any order, is highest, estimated with a Gaussian kernel.

    References:
        Landau 2022, Fig. 10 (a density plot). Silverman 1986, "Density Estimation", eq. 3.31, for the width.
    """
    width = kernel_width(rates)
    if width == 0.0:
        return float(np.median(rates))
    places = np.linspace(rates.min(), rates.max(), _GRID + 1)
    return float(places[np.argmax(densities(rates, width, places))])


def kernel_width(rates: NDArray[np.float64]) -> float:
    """Width of the kernel, by Silverman; 0: the rates are one as far as floats can tell."""
    low, high = np.percentile(rates, (25, 75))
    deviation, quartiles = np.std(rates), (high - low) / 1.34
    width = float(0.9 * (min(deviation, quartiles) or deviation) * len(rates) ** -0.2)
    return width if width > 1e-9 * rates.max() else 0.0


def densities(rates: NDArray[np.float64], width: float, places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Density at each place, but for a factor that is the same for all."""
    return np.array([np.exp(-(((at - rates) / width) ** 2) / 2).sum() for at in places])


def _histogram(rates: NDArray[np.float64], bins: int) -> tuple[tuple[float, float, int], ...]:
    low, high = float(rates.min()), float(rates.max())
    if high - low <= 2 * bins * np.spacing(high):  # no room for so many bars
        return ((low, high, len(rates)),)
    counts, edges = np.histogram(rates, bins)
    return tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True))
