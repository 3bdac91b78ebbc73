"""The flights as a stream: which position and weather reports are due between two instants of the replay.

Fields of a position report (topic by origin airport, key = tail number):
measured in 2013: `flight`, `carrier`, `tailnum`, `aircraft`, `origin`, `dest`, `dep_delay_min`, and, not in the report,
the airports' places, the time of departure and the time in the air. Derived: `ground_speed_kt`, the mean of the flight
(great circle over air time). Interpolated: `event_time` (every 10 s from departure on), `progress` (share
of the air time gone), `lat` and `lon` (that share of the great circle). Taxi times, winds, detours and altitudes are
not modelled. Weather reports (a topic of their own, key = airport) hold measured values only.
"""

import json
import math
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time
from types import SimpleNamespace
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from kgs_core.demo.flights import ORIGINS, WeatherTable, find_data, load_flights, load_weather
from kgs_core.demo.trajectory import Floats, Ints, great_circle_point
from kgs_core.errors import ConfigError
from kgs_core.model import TopicPartition
from kgs_core.monitor.speeds.recorded import RecordedMeasurement

DEFAULT_TIME_FACTOR = 432.0
"""Simulated seconds per second: a day in 200 s."""

_REPORT_EVERY_MS = 10_000
"""Of the simulated day, between two reports of one aircraft: about 2 MB/s at the peak with the default time factor."""

DEFAULT_DATE = date(2013, 9, 18)
"""A working Wednesday of calm weather: as busy as the year's median day, hardly any delay that drags into the night."""

DEFAULT_START_AT = time(4)
"""Local time: nearly nothing is in the air."""

WEATHER_TOPIC = "flights.weather"
TOPIC_OF = {origin: f"flights.{origin.lower()}" for origin in ORIGINS}
TOPICS = (*TOPIC_OF.values(), WEATHER_TOPIC)
PARTITIONS = 8

NEW_YORK = ZoneInfo("America/New_York")
_YEAR = 2013
_MOST_TEMPLATES = 4096
_STAGGER_STEP_MS = 7919  # prime, so that neighbours in the table report at different instants


class FlightRecord(NamedTuple):
    """One record to produce; `key` and `value` are UTF-8."""

    topic: str
    key: bytes
    value: bytes


class Replay:
    """The schedule of one replay; the same instants always give the same records."""

    def __init__(
        self,
        flights: pd.DataFrame,
        weather: WeatherTable,
        start_ms: int,
        time_factor: float = DEFAULT_TIME_FACTOR,
    ) -> None:
        """Starts at the event time `start_ms`, ms since 1970.

        `time_factor` is simulated seconds per second of replay, above 0.
        """
        self._flights = SimpleNamespace(**{str(name): column.to_numpy() for name, column in flights.items()})
        self._weather = weather
        self._start_ms = start_ms
        self._time_factor = time_factor
        self._longest_ms = int((self._flights.landing_ms - self._flights.takeoff_ms).max(initial=0))
        self._templates: dict[int, tuple[str, bytes, str]] = {}

    def event_ms(self, replay_s: float) -> int:
        """Event time, ms since 1970, that the replay has reached after `replay_s` seconds."""
        return self._start_ms + int(replay_s * self._time_factor * 1000)

    def due(self, from_s: float, to_s: float) -> list[FlightRecord]:
        """Records due in [from_s, to_s), seconds since the replay began, by event time; none after the year's end."""
        from_ms, to_ms = self.event_ms(from_s), self.event_ms(to_s)
        timed = self._positions(*self._instants(from_ms, to_ms))
        first, last = np.searchsorted(self._weather.time_ms, [from_ms, to_ms])
        timed.extend(self._weather_report(row) for row in range(int(first), int(last)))
        timed.sort(key=lambda pair: pair[0])
        return [record for _, record in timed]

    def _instants(self, from_ms: int, to_ms: int) -> tuple[Ints, Ints]:
        """Row of the flight and instant (ms) of every report in [from_ms, to_ms), by instant."""
        flights = self._flights
        first, last = np.searchsorted(flights.takeoff_ms, [from_ms - self._longest_ms, to_ms])
        rows = np.arange(first, last, dtype=np.int64)
        # Departures are known to the minute: without a stagger all aircraft would report in the same instant.
        begin_ms = flights.takeoff_ms[rows] + rows * _STAGGER_STEP_MS % _REPORT_EVERY_MS
        low = -((begin_ms - np.maximum(begin_ms, from_ms)) // _REPORT_EVERY_MS)
        high = -((begin_ms - np.minimum(flights.landing_ms[rows], to_ms)) // _REPORT_EVERY_MS)
        counts = np.maximum(high - low, 0)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        times_ms = np.repeat(begin_ms + low * _REPORT_EVERY_MS, counts) + within * _REPORT_EVERY_MS
        order = np.argsort(times_ms, kind="stable")
        return np.repeat(rows, counts)[order], times_ms[order]

    def _positions(self, rows: Ints, times_ms: Ints) -> list[tuple[int, FlightRecord]]:
        flights = self._flights
        air_ms = flights.landing_ms[rows] - flights.takeoff_ms[rows]
        progress: Floats = (times_ms - flights.takeoff_ms[rows]) / air_ms
        origin = (flights.origin_lat[rows], flights.origin_lon[rows])
        lat, lon = great_circle_point(*origin, flights.dest_lat[rows], flights.dest_lon[rows], progress)
        columns = (
            times_ms.tolist(),
            rows.tolist(),
            np.datetime_as_string(times_ms.astype("datetime64[ms]")).tolist(),
            lat.tolist(),
            lon.tolist(),
            progress.tolist(),
        )
        found = []
        for at_ms, row, stamp, *numbers in zip(*columns, strict=True):
            topic, key, template = self._templates.get(row) or self._template(row)
            value = template % (stamp, *numbers)
            found.append((at_ms, FlightRecord(topic, key, value.encode())))
        return found

    def _template(self, row: int) -> tuple[str, bytes, str]:
        """Topic, key and value of a flight, the moving fields of the value left open.

        Made once per flight: encoding every record from nothing would cost more than producing it.
        """
        flights = self._flights
        names = ("carrier", "tailnum", "aircraft", "origin", "dest")
        still = {"flight": flights.number[row]} | {name: getattr(flights, name)[row] for name in names}
        still |= {
            "dep_delay_min": int(flights.dep_delay_min[row]),
            "ground_speed_kt": int(flights.ground_speed_kt[row]),
        }
        head = json.dumps(still, separators=(",", ":")).replace("%", "%%")[1:-1]
        moving = '"lat":%.5f,"lon":%.5f,"progress":%.4f'
        if len(self._templates) >= _MOST_TEMPLATES:  # far more than are ever in the air: the others have landed
            self._templates.clear()
        made = (
            TOPIC_OF[flights.origin[row]],
            flights.tailnum[row].encode(),
            f'{{"event_time":"%sZ",{head},{moving}}}',
        )
        self._templates[row] = made
        return made

    def _weather_report(self, row: int) -> tuple[int, FlightRecord]:
        event_ms = int(self._weather.time_ms[row])
        airport = self._weather.airport[row]
        stamp = f"{np.datetime_as_string(np.datetime64(event_ms, 'ms'))}Z"
        value = json.dumps(
            {"event_time": stamp, "airport": airport, **self._weather.fields[row]}, separators=(",", ":")
        )
        return event_ms, FlightRecord(WEATHER_TOPIC, airport.encode(), value.encode())


def open_replay(
    day: date = DEFAULT_DATE, start_at: time = DEFAULT_START_AT, time_factor: float = DEFAULT_TIME_FACTOR
) -> Replay:
    """The replay of the installed data from `day` at `start_at`, New York time; reading it takes a second or two.

    Raises:
        ConfigError: the day is not in 2013, or the factor is not above 0.
        PermanentError: the data is not installed.
    """
    problems = []
    if day.year != _YEAR:
        problems.append(f"date: {day}: the flights are of 2013: give a day of that year")
    if not 0 < time_factor < math.inf:
        problems.append(f"time_factor: {time_factor}: must be a finite number above 0")
    if problems:
        raise ConfigError(problems)
    folder = find_data()
    start_ms = int(datetime.combine(day, start_at, NEW_YORK).timestamp() * 1000)
    return Replay(load_flights(folder), load_weather(folder), start_ms, time_factor)


def write_speeds(replay: Replay, seconds: float, step_s: float) -> Iterator[RecordedMeasurement]:
    """What a monitor would measure over the first `seconds` of the replay, uncompressed values in bytes/s.

    One measurement per `step_s`; time is seconds of the replay. Partitions are chosen as librdkafka's default does.
    """
    for step in range(round(seconds / step_s)):
        speeds = {TopicPartition(topic, number): 0.0 for topic in TOPICS for number in range(PARTITIONS)}
        for record in replay.due(step * step_s, (step + 1) * step_s):
            speeds[TopicPartition(record.topic, zlib.crc32(record.key) % PARTITIONS)] += len(record.value) / step_s
        yield RecordedMeasurement((step + 1) * step_s, speeds)
