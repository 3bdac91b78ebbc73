"""Density of rates, as the paper draws it."""

from collections.abc import Sequence

import numpy as np

from kgs_core.monitor.speeds.rates import densities, kernel_width

_POINTS = 200


def density(rates: Sequence[float]) -> list[tuple[float, float]]:
    """Rate and density, from three kernel widths below the lowest to three above the highest; none if all are one."""
    found = np.asarray(rates, np.float64)
    width = kernel_width(found)
    if width == 0.0:
        return []
    places = np.linspace(max(0.0, found.min() - 3 * width), found.max() + 3 * width, _POINTS)
    at_places = densities(found, width, places) / (len(found) * width * np.sqrt(2 * np.pi))
    return list(zip(places.tolist(), at_places.tolist(), strict=True))
