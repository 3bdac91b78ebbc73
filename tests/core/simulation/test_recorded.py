"""Recorded loads: from what the monitor published, to a file and back, and through the command to figures."""

import json
from random import Random

import pytest
from click.testing import CliRunner

from kgs_core.cli.main import cli
from kgs_core.model import TopicPartition
from kgs_core.monitor.speeds import Measure, Measurement, PartitionSpeed, Reading, Verdict
from kgs_core.monitor.speeds.recorded import parse_measurements
from kgs_core.packing import PackingProblem
from kgs_core.simulation.recorded import json_lines, published_speeds, recorded_workload
from tests.core.packing import reference
from tests.core.simulation import plain_latency

A, B = TopicPartition("a", 0), TopicPartition("b", 3)


def measurement(second, **speeds):
    """A number is measured, a verdict has no speed."""
    found = {}
    for partition, value in ((A, speeds.get("a")), (B, speeds.get("b"))):
        if isinstance(value, Verdict):
            found[partition] = PartitionSpeed(value)
        elif value is not None:
            found[partition] = PartitionSpeed(Verdict.MEASURED, value)
    return Measurement(Reading(0.0, 1000 * second, "clock", Measure.LOG_DIRS, {}), found)


def test_unknown_keeps_the_last_speed_and_vanished_is_gone():
    found = published_speeds([
        measurement(1, a=5.0, b=Verdict.UNKNOWN),
        measurement(2, a=Verdict.RESTARTED, b=7.0),
        measurement(3, a=Verdict.VANISHED, b=8.0),
        measurement(4, a=Verdict.UNKNOWN, b=Verdict.UNKNOWN),
        measurement(5, b=9.0),
    ])  # fmt: skip
    assert [(one.time, one.speeds) for one in found] == [
        (1.0, {A: 5.0}), (2.0, {A: 5.0, B: 7.0}), (3.0, {B: 8.0}), (4.0, {B: 8.0}), (5.0, {B: 9.0}),
    ]  # fmt: skip


def test_a_saved_load_is_read_back_as_it_was():
    load = list(published_speeds([measurement(1, a=0.1, b=1 / 3), measurement(31, b=2.5e6)]))
    assert parse_measurements(json_lines(load), "file") == tuple(load)
    assert recorded_workload("week", load, 100.0).measurements == [{A: 0.1, B: 1 / 3}, {B: 2.5e6}]


class Plain:
    """What the plain packers and the plain round robin do with a load, and what the plain model says of it."""

    def __init__(self, name, measurements):
        self.assignments, self.rscores = [], []
        current = {}
        order = list(measurements[0])
        for speeds in measurements:
            if name.startswith("kafka:"):
                target = {p: 1 + n % int(name[6:]) for n, p in enumerate(order)}
            else:
                bins = reference.pack(name, PackingProblem(speeds, 100, current))
                target = {p: number for number, held in bins.items() for p in held}
            moved = [p for p in target if p in current and current[p] != target[p]]
            self.rscores.append(sum(speeds[p] for p in moved) / 100)
            self.assignments.append(target)
            current = target
        self.latency = plain_latency.figures(plain_latency.latencies(measurements, self.assignments))


def test_the_command_against_plain_packers_and_the_plain_model(tmp_path):
    """A recorded load in per cent of C, not in the order of names; everything else computed as plainly as can be."""
    random = Random(7)
    partitions = [TopicPartition(topic, n) for topic in ("z", "a") for n in random.sample(range(8), 8)]
    speeds = {p: float(random.randint(0, 60)) for p in partitions}
    measurements = []
    for _ in range(10):
        measurements.append(speeds)
        speeds = {p: min(90.0, max(0.0, s + random.randint(-12, 12))) for p, s in speeds.items()}
    file = tmp_path / "load.jsonl"
    trees = [{"z": {}, "a": {}} for _ in measurements]
    for tree, found in zip(trees, measurements, strict=True):
        for p, s in found.items():
            tree[p.topic][str(p.partition)] = s
    file.write_text("".join(json.dumps({"time": n, "speeds": tree}) + "\n" for n, tree in enumerate(trees)))
    options = "--capacity 100 --latency --baseline kafka:3,kafka:5 --json"
    result = CliRunner().invoke(cli, ["simulate", "--speeds", str(file), *options.split()])
    assert result.exit_code == 0, result.stderr
    rows = {row["algorithm"]: row for row in json.loads(result.stdout)["results"]}
    for name in ("nfd", "ffd", "bfd", "wfd", "mwf", "mbf", "mwfp", "mbfp", "kafka:3", "kafka:5"):
        plain, row = Plain(name, measurements), rows[name]
        consumers = [len(set(target.values())) for target in plain.assignments]
        assert row["mean_consumers"] == pytest.approx(sum(consumers) / 10), name
        assert row["average_rscore"] == pytest.approx(sum(plain.rscores) / 10), name
        for key, figure in (
            ("mean_latency_s", "mean"), ("p95_latency_s", "p95"), ("p99_latency_s", "p99"),
            ("p90_delayed_latency_s", "p90_delayed"), ("delayed_share", "delayed_share"),
        ):  # fmt: skip
            assert row[key] == pytest.approx(plain.latency[figure], rel=1e-6, abs=1e-8), (name, key)
    assert rows["kafka:3"]["delayed_share"] > 0.5
