"""Trajectory of an aircraft between two airports: great circle, altitude, phase. Pure, vectorised, interpolated."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PHASES = ("climb", "cruise", "descent")
"""Names of the phase codes 0, 1, 2."""

EARTH_RADIUS_NM = 3440.065
"""Mean radius, nautical miles."""

_CLIMB_FT_PER_S = 2000 / 60
_DESCENT_FT_PER_S = 1500 / 60
_LOWEST_CRUISE_FT, _HIGHEST_CRUISE_FT, _CRUISE_FT_PER_NM = 10_000, 39_000, 50
# A short hop still spends a fifth of its time in cruise: climb and descent shrink together to fit the rest.
_CLIMB_AND_DESCENT_AT_MOST = 0.8


class Profile(NamedTuple):
    """Altitude in ft and phase code (an index into `PHASES`), one of each per report."""

    altitude_ft: Floats
    phase: Ints


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


def cruise_altitude_ft(leg_nm: Floats) -> Floats:
    """Assumed cruise altitude of a leg: the longer the higher, in whole thousands of feet."""
    altitude = np.clip(_LOWEST_CRUISE_FT + _CRUISE_FT_PER_NM * leg_nm, _LOWEST_CRUISE_FT, _HIGHEST_CRUISE_FT)
    return np.asarray(np.round(altitude, -3))


def profile(elapsed_s: Floats, air_time_s: Floats, origin_ft: Floats, cruise_ft: Floats, dest_ft: Floats) -> Profile:
    """Altitude and phase `elapsed_s` after take-off: a straight climb, level flight, a straight descent.

    `elapsed_s` is 0 to `air_time_s`; `origin_ft` and `dest_ft` are the airports' elevations.
    """
    climb_s = np.maximum(cruise_ft - origin_ft, 0) / _CLIMB_FT_PER_S
    descent_s = np.maximum(cruise_ft - dest_ft, 0) / _DESCENT_FT_PER_S
    shrink = np.minimum(1.0, _CLIMB_AND_DESCENT_AT_MOST * air_time_s / (climb_s + descent_s))
    climb_s, descent_s = climb_s * shrink, descent_s * shrink
    remaining_s = air_time_s - elapsed_s
    climbed = origin_ft + (cruise_ft - origin_ft) * np.clip(elapsed_s / climb_s, 0, 1)
    above_dest = dest_ft + (cruise_ft - dest_ft) * np.clip(remaining_s / descent_s, 0, 1)
    climbing, descending = elapsed_s < climb_s, remaining_s < descent_s
    altitude = np.where(climbing, climbed, np.where(descending, above_dest, cruise_ft))
    return Profile(altitude, np.where(climbing, 0, np.where(descending, 2, 1)).astype(np.int64))
