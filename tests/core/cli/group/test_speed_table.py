"""How a measurement is shown."""

from kgs_core.cli.group.capacity import settings_for
from kgs_core.cli.group.speed_table import as_json, ranked, speed_table
from kgs_core.model import TopicId, TopicPartition
from kgs_core.monitor.speeds import Measure, Measurement, PartitionReading, PartitionSpeed, Reading, Verdict
from tests.rendered import lines_of

SLOW, FAST, GONE = TopicPartition("a", 0), TopicPartition("b", 1), TopicPartition("c", 2)
LOG = PartitionReading(1.0, 1.0, TopicId("one"), 1, 0, 10, 1000)
SPEEDS = {
    SLOW: PartitionSpeed(Verdict.MEASURED, 250_000.0),
    FAST: PartitionSpeed(Verdict.SHRUNK, 750_000.0, "the log was cut"),
    GONE: PartitionSpeed(Verdict.UNKNOWN, None, "broker 1 did not answer"),
}
READING = Reading(1.0, 1_700_000_000_000, "here", Measure.LOG_DIRS, {SLOW: LOG, FAST: LOG}, {GONE: "no answer"})
MEASUREMENT = Measurement(READING, SPEEDS)


def shown(measurement, top=20):
    return lines_of(speed_table(measurement, top), 120)


def test_largest_first_and_the_unknown_last():
    assert [tp for tp, _ in ranked(MEASUREMENT)] == [FAST, SLOW, GONE]


def test_the_table_says_what_is_known_and_why_not():
    lines = shown(MEASUREMENT)
    assert lines[0] == "22:13:20 | 1.000 MB/s stored | speed known of 2 of 3 partitions | by log_dirs"
    assert lines[2].split() == ["b:1", "0.750", "75.0%", "shrunk", "the", "log", "was", "cut"]
    assert lines[4].split() == ["c:2", "?", "?", "unknown", "broker", "1", "did", "not", "answer"]


def test_what_does_not_fit_is_counted():
    assert shown(MEASUREMENT, top=1)[-1] == "and 2 more"


def test_nothing_is_written_to_nothing():
    idle = Measurement(READING, {SLOW: PartitionSpeed(Verdict.MEASURED, 0.0)})
    assert shown(idle)[2].split() == ["a:0", "0.000", "measured"]


def test_json_has_null_for_what_is_not_known():
    found = as_json(MEASUREMENT)
    assert found["time"] == "2023-11-14T22:13:20.000+00:00"
    assert found["total_bytes_per_s"] == 1_000_000.0
    assert found["partitions"][0] == {
        "topic": "b",
        "partition": 1,
        "bytes_per_s": 750_000.0,
        "share": 0.75,
        "verdict": "shrunk",
        "reason": "the log was cut",
        "leader": 1,
        "log_start": 0,
        "end_offset": 10,
        "size_bytes": 1000,
    }
    assert found["partitions"][2]["bytes_per_s"] is None


def test_the_capacity_keeps_the_published_distance_to_the_measured_rate():
    assert settings_for(2_300_000.0) == {"consumer_capacity_bytes_per_s": 2_000_000}
