"""Recorded measurements as a load to replay."""

import json
from collections.abc import Iterable, Iterator, Sequence

from kgs_core.model import BytesPerSecond, TopicPartition, by_topic
from kgs_core.monitor.speeds import Measurement, Verdict
from kgs_core.monitor.speeds.recorded import RecordedMeasurement
from kgs_core.simulation.workload import Workload


def recorded_workload(key: str, measurements: Sequence[RecordedMeasurement], capacity: BytesPerSecond) -> Workload:
    """The load in `measurements`, each of which lasts as long as any other whatever its time says."""
    return Workload(key, capacity, [measurement.speeds for measurement in measurements])


def published_speeds(measurements: Iterable[Measurement]) -> Iterator[RecordedMeasurement]:
    """What the monitor published, as it is replayed.

    A partition whose speed is not known keeps its last known one, for unknown is not zero; one that never had any, or
    has vanished, is left out.
    """
    last: dict[TopicPartition, float] = {}
    for measurement in measurements:
        there = {p for p, speed in measurement.speeds.items() if speed.verdict is not Verdict.VANISHED}
        last = {p: speed for p, speed in {**last, **measurement.known}.items() if p in there}
        yield RecordedMeasurement(measurement.reading.wall_ms / 1000, dict(sorted(last.items())))


def json_lines(measurements: Iterable[RecordedMeasurement]) -> str:
    """The text of a file that `parse_measurements` reads."""
    return "".join(json.dumps({"time": each.time, "speeds": by_topic(each.speeds)}) + "\n" for each in measurements)
