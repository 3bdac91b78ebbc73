import inspect
import itertools
import json
from datetime import date, datetime, time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.cli.local.generate import generate
from kgs_core.demo.layout import POSITION_FIELDS
from kgs_core.demo.replay import (
    DEFAULT_DATE,
    PARTITIONS,
    TOPIC_OF,
    TOPICS,
    WEATHER_TOPIC,
    Replay,
    open_replay,
    write_speeds,
)
from kgs_core.errors import ConfigError

START_MS = 1_379_491_200_000  # 2013-09-18 04:00 in New York
NEW_YEAR_MS = 1_388_534_400_000  # 2014, UTC


def event_ms(record):
    stamp = json.loads(record.value)["event_time"]
    assert stamp.endswith("Z")
    return round(datetime.fromisoformat(stamp).timestamp() * 1000)


def replay_second(hours_after_4):
    return hours_after_4 * 200 / 24


@pytest.fixture(scope="module")
def replay(flights, weather):
    return Replay(flights, weather, START_MS)


@pytest.fixture(scope="module")
def shape(replay):
    """Load by topic over the replay, bytes/s of values, one figure a second."""
    shape = {topic: np.zeros(200) for topic in TOPICS}
    for second in range(200):
        for record in replay.due(second, second + 1):
            shape[record.topic][second] += len(record.value)
    return shape


@pytest.fixture(scope="module")
def noon(replay):
    """Replay seconds 66 to 68: about a quarter of an hour around noon."""
    return replay.due(66, 68)


def test_default_start_is_four_in_the_morning_in_new_york():
    replay = open_replay()
    assert replay.event_ms(0) == START_MS
    assert replay.event_ms(200) == START_MS + 86_400_000


def test_records_come_by_event_time(noon):
    times = [event_ms(record) for record in noon]
    assert times == sorted(times)
    assert times[0] >= START_MS + 66 * 432_000
    assert times[-1] < START_MS + 68 * 432_000


def test_topic_and_key_follow_from_the_record(noon):
    for record in noon:
        fields = json.loads(record.value)
        if record.topic == WEATHER_TOPIC:
            assert record.key.decode() == fields["airport"]
        else:
            assert (record.topic, record.key.decode()) == (TOPIC_OF[fields["origin"]], fields["tailnum"])


def test_position_report_has_the_documented_fields_and_size(noon):
    reports = [record for record in noon if record.topic != WEATHER_TOPIC]
    assert all(list(json.loads(record.value)) == list(POSITION_FIELDS) for record in reports)
    assert all(190 <= len(record.value) <= 400 for record in reports)
    assert all(f"`{name}`" in inspect.getmodule(Replay).__doc__ for name in POSITION_FIELDS)
    first = json.loads(reports[0].value)
    assert 0 <= first["progress"] <= 1


def test_each_aircraft_reports_at_its_interval(noon):
    times = {}
    for record in noon:
        if record.topic != WEATHER_TOPIC:
            times.setdefault(json.loads(record.value)["flight"], []).append(event_ms(record))
    assert {gap for instants in times.values() for gap in np.diff(instants)} == {10_000}


def test_weather_of_three_airports_comes_every_hour(replay):
    reports = [record for record in replay.due(0, 25) if record.topic == WEATHER_TOPIC]
    assert len(reports) == 9
    assert {event_ms(record) % 3_600_000 for record in reports} == {0}
    assert b"NaN" not in b"".join(record.value for record in reports)


@settings(max_examples=10)
@given(st.lists(st.floats(50, 51), max_size=5))
def test_slices_join_without_gap_or_double(replay, cuts):
    ends = [50.0, *sorted(cuts), 51.0]
    joined = [record for a, b in itertools.pairwise(ends) for record in replay.due(a, b)]
    assert joined == replay.due(50, 51)


def test_rate_scales_with_the_time_factor(flights, weather):
    plain, fast = (
        len(Replay(flights, weather, START_MS + 8 * 3_600_000, factor).due(0, 1)) for factor in (432.0, 864.0)
    )
    assert fast == pytest.approx(2 * plain, rel=0.05)


def test_after_the_end_of_the_year_the_last_flights_land(flights, weather):
    replay = Replay(flights, weather, NEW_YEAR_MS, time_factor=3600.0)
    assert replay.due(0, 1)
    assert replay.due(12, 13) == []


def test_an_empty_table_gives_nothing(flights, weather):
    assert {record.topic for record in Replay(flights[:0], weather, START_MS).due(0, 20)} == {WEATHER_TOPIC}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"day": date(2014, 1, 1)}, "2013"),
        ({"time_factor": 0.0}, "above 0"),
        ({"time_factor": float("inf")}, "finite"),
    ],
)
def test_impossible_replay_is_refused(arguments, problem):
    with pytest.raises(ConfigError, match=problem):
        open_replay(**arguments)


@pytest.mark.slow
def test_peak_is_about_two_megabytes_a_second(shape):
    assert 1.5e6 < sum(shape.values()).max() < 2.5e6


@pytest.mark.slow
@pytest.mark.parametrize(("begin", "end"), [(0, 0.5), (22, 24)])  # 04:00 to 04:30, 02:00 to 04:00
def test_night_is_nearly_nothing(shape, begin, end):
    load = sum(shape.values())
    assert load[round(replay_second(begin)) : round(replay_second(end))].max() < 0.05 * load.max()


def test_command_defaults_are_the_replays(replay):
    given = {option.name: option.default for option in generate.params}
    made = inspect.signature(open_replay).parameters
    assert given["time_factor"] == made["time_factor"].default
    assert given["day"] == DEFAULT_DATE.isoformat()
    assert given["start_at"] == f"{made['start_at'].default:%H:%M}"
    assert (time(4), 8, 4) == (made["start_at"].default, PARTITIONS, len(TOPICS))


@pytest.mark.slow
def test_write_speeds_are_the_load_by_partition(replay, shape):
    found = list(write_speeds(replay, 20, 5))
    assert [each.time for each in found] == [5, 10, 15, 20]
    assert all(len(each.speeds) == 4 * 8 for each in found)
    for number, each in enumerate(found):
        for topic, loads in shape.items():
            sent = sum(speed for partition, speed in each.speeds.items() if partition.topic == topic)
            assert sent == pytest.approx(loads[5 * number : 5 * number + 5].mean())
    assert sum(speed > 0 for speed in found[-1].speeds.values()) > 8
