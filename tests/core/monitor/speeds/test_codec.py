"""The wire form of a measurement."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.errors import ProtocolError
from kgs_core.model import TopicId, TopicPartition
from kgs_core.monitor.speeds import Measure, PartitionReading, Reading, Window, codec
from kgs_core.monitor.speeds.codec import decode, encode

TOPICS = ["a", "b.c", "ü"]
counts = st.integers(0, 2**50)
tps = st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 3))
partition_logs = st.builds(
    PartitionReading,
    st.just(0.0),
    st.just(0.0),
    st.sampled_from([TopicId("one"), TopicId("two")]),
    st.integers(0, 2),
    counts,
    counts,
    st.none() | counts,
    st.none() | st.floats(0, 1e9),
)
readings = st.builds(
    Reading,
    st.just(0.0),
    st.integers(0, 2**45),
    st.just("here"),
    st.sampled_from(Measure),
    st.dictionaries(tps, partition_logs, max_size=6),
    st.dictionaries(tps, st.text(max_size=20), max_size=3),
)


def run(found, window):
    measurements = []
    for number, reading in enumerate(found):
        now = number * 1.1
        logs = {tp: replace(log, time_s=now, offsets_s=now + 0.1) for tp, log in reading.partitions.items()}
        unknown = {tp: words for tp, words in reading.unknown.items() if tp not in logs}
        measurements.append(window.add(replace(reading, time_s=now, partitions=logs, unknown=unknown)))
    return measurements


def is_the_same(decoded, original):
    """But for the digits of a speed behind the sixth."""
    assert decoded.speeds.keys() == original.speeds.keys()
    for tp, speed in original.speeds.items():
        if speed.bytes_per_s is not None:
            assert math.isclose(decoded.speeds[tp].bytes_per_s, speed.bytes_per_s, rel_tol=1e-5)
        assert replace(decoded.speeds[tp], bytes_per_s=None) == replace(speed, bytes_per_s=None)
    return decoded.known.keys() == original.known.keys()


@given(st.lists(readings, max_size=15))
def test_a_window_rebuilt_from_the_records_is_the_original(found):
    """The speeds in the records are not used for it: they come out again."""
    original = run(found, Window(9.0, 2.0))
    rebuilt = Window(9.0, 2.0)
    decoded = [decode(encode(measurement)) for measurement in original]
    assert [each.reading for each in decoded] == [each.reading for each in original]
    assert all(map(is_the_same, decoded, original))
    assert [rebuilt.add(measurement.reading) for measurement in decoded] == original


@pytest.fixture
def known_measurement(log, reading):
    window = Window(30.0, 10.0)
    window.add(reading(0.0, log(0.0, end=0)))
    return window.add(reading(10.0, log(10.0, end=500), {TopicPartition("u", 3): "broker 2 did not answer"}))


def test_the_record_is_as_kgs_0_1_wrote_it_and_is_read_so(known_measurement):
    assert json.loads(encode(known_measurement)) == OF_0_1
    assert decode(json.dumps(OF_0_1).encode()) == known_measurement


OF_0_1 = {
    "version": 2,
    "time_s": 10.0,
    "wall_ms": 1_700_000_000_000,
    "clock": "here",
    "measure": "log_dirs",
    "topics": [
        {"topic": "t", "topic_id": "one", "partitions": [0]},
        {"topic": "u", "topic_id": "", "partitions": [3]},
    ],
    "columns": {
        "bytes_per_s": [5000.0, None],
        "verdict": ["measured", "unknown"],
        "reason": ["", "broker 2 did not answer"],
        "unknown": [None, "broker 2 did not answer"],
        "time_s": [10.0, None],
        "offsets_s": [10.0, None],
        "leader": [1, None],
        "log_start": [0, None],
        "end_offset": [500, None],
        "size_bytes": [50000, None],
        "bytes_per_record": {"values": [None]},
    },
}


def test_zones_are_written_where_they_are_known(log, reading):
    logs = {TopicPartition("t", n): log(0.0, end=7, zone=zone) for n, zone in enumerate(["a", None, "b"])}
    measurement = Window().add(replace(reading(0.0), partitions=logs))
    assert json.loads(encode(measurement))["columns"]["zone"] == ["a", None, "b"]
    assert decode(encode(measurement)) == measurement


def test_values_that_repeat_are_written_once(log, reading):
    tps = [TopicPartition("t", number) for number in range(100)]
    logs = {tp: replace(log(0.0, end=tp.partition * 7), leader=tp.partition % 3) for tp in tps}
    measurement = Window().add(replace(reading(0.0), partitions=logs))
    columns = json.loads(encode(measurement))["columns"]
    assert columns["leader"] == {"values": [0, 1, 2], "at": [tp.partition % 3 for tp in tps]}
    assert columns["log_start"] == {"values": [0]}
    assert columns["end_offset"] == [tp.partition * 7 for tp in tps]
    assert decode(encode(measurement)) == measurement


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"end_offset": [1]}, "columns.end_offset: no value for each of 2"),
        ({"leader": {"values": [1], "at": [0]}}, "columns.leader: no value for each of 2"),
        ({"leader": {"values": [1], "at": [0, 1]}}, "columns.leader: no value for each of 2"),
        ({"leader": {"values": []}}, "columns.leader"),
        ({"bytes_per_s": [-1.0, None]}, "columns.bytes_per_s"),
        ({"verdict": ["measured", "odd"]}, "columns.verdict"),
        ({"end_offset": ["1", None]}, "columns.end_offset"),
    ],
)
def test_columns_that_do_not_fit_are_refused(known_measurement, change, words):
    good = json.loads(encode(known_measurement))
    with pytest.raises(ProtocolError, match=words):
        decode(json.dumps(good | {"columns": good["columns"] | change}).encode())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 1}, "version: Input should be greater than or equal to 2"),
        ({"version": 3}, "version"),
        ({"version": None}, "version"),
        ({"time_s": float("nan")}, "time_s"),
        ({"time_s": "1"}, "time_s"),
        ({"measure": "guess"}, "measure"),
        ({"clock": ""}, "clock"),
        ({"topics": [{"topic": "t", "topic_id": "x", "partitions": [-1]}]}, "partitions.0"),
        ({"topics": [{"topic": "", "topic_id": "x", "partitions": [0]}]}, "topics.0.topic"),
        ({"columns": {}}, "columns.bytes_per_s"),
    ],
)
def test_what_it_does_not_know_is_refused(reading, change, words):
    good = json.loads(encode(Window().add(reading(0.0))))
    with pytest.raises(ProtocolError, match=words):
        decode(json.dumps(good | change).encode())


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_measurement_is_refused(data):
    with pytest.raises(ProtocolError, match="left out"):
        decode(data)


def test_a_record_without_end_is_refused_unread(monkeypatch):
    monkeypatch.setattr(codec, "MAX_BYTES", 10)
    with pytest.raises(ProtocolError, match="11 bytes, more than 10"):
        decode(b" " * 11)


def test_words_that_a_later_version_adds_are_passed_over(log, reading):
    measurement = Window().add(reading(0.0, log(0.0, end=1)))
    assert decode(json.dumps(json.loads(encode(measurement)) | {"more": 1}).encode()) == measurement
