"""Great circle between two airports. Pure, vectorised."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EARTH_RADIUS_NM = 3440.065
"""Mean radius, nautical miles."""


def _angle(lat1: Floats, lon1: Floats, lat2: Floats, lon2: Floats) -> Floats:
    """Central angle between points given in radians; haversine, exact for short legs too."""
    h = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return np.asarray(2 * np.arcsin(np.sqrt(np.clip(h, 0.0, 1.0))))


def distance_nm(lat1: Floats, lon1: Floats, lat2: Floats, lon2: Floats) -> Floats:
    """Great-circle distance in nautical miles of points given in degrees."""
    return EARTH_RADIUS_NM * _angle(*(np.radians(degrees) for degrees in (lat1, lon1, lat2, lon2)))


def great_circle_point(
    lat1: Floats, lon1: Floats, lat2: Floats, lon2: Floats, fraction: Floats
) -> tuple[Floats, Floats]:
    """Latitude and longitude, degrees, after `fraction` (0 to 1) of the great circle from point 1 to point 2.

    All coordinates are in degrees; the two points are neither equal nor antipodal.
    """
    lat1, lon1, lat2, lon2 = (np.radians(degrees) for degrees in (lat1, lon1, lat2, lon2))
    angle = _angle(lat1, lon1, lat2, lon2)
    a = np.sin((1 - fraction) * angle) / np.sin(angle)
    b = np.sin(fraction * angle) / np.sin(angle)
    x = a * np.cos(lat1) * np.cos(lon1) + b * np.cos(lat2) * np.cos(lon2)
    y = a * np.cos(lat1) * np.sin(lon1) + b * np.cos(lat2) * np.sin(lon2)
    z = a * np.sin(lat1) + b * np.sin(lat2)
    return np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))
