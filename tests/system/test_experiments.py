"""Experiments on Spark, and on what a monitor published to a real broker."""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
import yaml
from confluent_kafka import Producer

from kgs_core.config.file import load_settings
from kgs_core.config.settings import SparkSettings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.experiments.grid import ExperimentRun, Grid, run_here
from kgs_core.experiments.spark_runner import run_on_spark
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka.topic import topic_name
from kgs_core.monitor.speeds import Measure, Measurement, PartitionSpeed, Reading, Verdict
from kgs_core.monitor.speeds.codec import encode
from kgs_core.packing import ALGORITHMS
from kgs_core.simulation.replay import Conditions
from kgs_core.simulation.workload import StreamSpec, Workload

KGS = str(Path(sys.executable).with_name("kgs"))
ROUNDED = 5e-6  # of a speed that was published
SINCE = 1000 * (round(time.time()) - 600)  # noqa: TID251 - the broker's clock is that of the machine
"""ms since 1970; not so long ago that the broker would delete it."""
A, B, C = (TopicPartition("t", n) for n in range(3))


@pytest.mark.spark
@pytest.mark.slow(25)
def test_spark_gives_the_same_to_the_bit_in_the_same_order() -> None:
    """Every algorithm and baseline, generated and recorded loads, more runs than one job takes at a time."""
    random = Random(1)
    speeds = [{TopicPartition("t", n): random.random() for n in range(15)} for _ in range(4)]
    loads: list[StreamSpec | str] = [StreamSpec(d, seed=d, steps=6, partitions=20) for d in (5, 10, 15, 25)]
    loads.append("recorded")
    names = (*ALGORITHMS, "kafka:4", "keda")
    runs = [ExperimentRun(name, load) for load in loads for name in names] + [
        ExperimentRun("kafka:4", "recorded", n) for n in (1, 2)
    ]
    grid = Grid(tuple(runs), Conditions(record_latency=True), {"recorded": Workload("recorded", 1.0, speeds)})
    assert len(runs) > 64
    seen: list[tuple[int, int]] = []
    found = run_on_spark(grid, SparkSettings.on("local[2]"), lambda done, total: seen.append((done, total)))
    assert found == run_here(grid, lambda _done, _total: None)
    assert seen[-1] == (len(runs), len(runs))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.spark
@pytest.mark.slow
def test_a_master_that_is_none_is_one_line(tmp_path: Path) -> None:
    command = [KGS, "simulate", "--partitions", "5", "--steps", "1", "--spark", "nowhere", "--results", "grid.parquet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: Spark nowhere: does not start: " in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def measurement(number: int, **speeds: float | None) -> Measurement:
    """One a second from SINCE on; None is unknown."""
    found = {
        tp: PartitionSpeed(Verdict.UNKNOWN if speed is None else Verdict.MEASURED, speed)
        for tp, speed in zip((A, B, C), speeds.values(), strict=False)
    }
    return Measurement(Reading(float(number), SINCE + 1000 * number, "clock", Measure.LOG_DIRS, {}), found)


def test_what_the_monitor_published_is_a_load(
    kafka: EmbeddedKafka, admin: KafkaAdmin, topic_prefix: str, tmp_path: Path
) -> None:
    """20 s of measurements; from second 5 to 15, every third: 5, 8, 11, 14. b is unknown at 8 and keeps its speed."""
    config = tmp_path / "kgs.yaml"
    tree = {
        "group": f"{topic_prefix}g",
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
        "lake": {"root": str(tmp_path / "lake")},
        "topics": [{"pattern": ".*", "table": "{topic}"}],
        "packing": {"packing_capacity_bytes_per_s": 1_500_000.0},
    }
    config.write_text(yaml.safe_dump(tree))
    topic = topic_name(load_settings(config, {}))
    admin.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for n in range(20):
        value = encode(measurement(n, a=1e6 + 100 * n, b=None if n == 8 else 5e5 + 100 * n))
        producer.produce(topic, value, partition=0, timestamp=SINCE + 1000 * n)
        if n == 9:
            producer.produce(topic, b"no measurement", partition=0, timestamp=SINCE + 1000 * n)
    assert producer.flush(30) == 0
    since, until = (datetime.fromtimestamp(SINCE / 1000 + s, UTC).isoformat() for s in (5, 15))
    command = [KGS, "simulate", "--config", str(config), "--since", since, "--until", until, "--interval", "3"]
    done = subprocess.run(
        [*command, "--algorithm", "mwf", "--json", "--save-speeds", "load.jsonl"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, "2 MB/s as configured" in done.stderr) == (0, True), done.stderr
    saved = [json.loads(line) for line in (tmp_path / "load.jsonl").read_text().splitlines()]
    assert [line["time"] for line in saved] == [SINCE / 1000 + n for n in (5, 8, 11, 14)]
    for line, (n, known) in zip(saved, ((5, 5), (8, 5), (11, 11), (14, 14)), strict=True):
        assert line["speeds"]["t"] == pytest.approx({"0": 1e6 + 100 * n, "1": 5e5 + 100 * known}, rel=ROUNDED)
    (row,) = json.loads(done.stdout)["results"]
    assert (row["measurements"], row["partitions"], row["mean_consumers"]) == (4, 2, 2)
    arguments = [
        KGS,
        "simulate",
        "--speeds",
        "load.jsonl",
        "--capacity",
        "1500000",
        "--interval",
        "3",
        "--algorithm",
        "mwf",
        "--json",
    ]
    again = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    assert {**json.loads(again.stdout)["results"][0], "workload": row["workload"]} == row


def test_no_measurement_in_that_time_is_reported(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> None:
    tree = {
        "group": f"{topic_prefix}g",
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
        "lake": {"root": str(tmp_path / "lake")},
        "topics": [{"pattern": ".*", "table": "{topic}"}],
    }
    (tmp_path / "kgs.yaml").write_text(yaml.safe_dump(tree))
    command = [KGS, "simulate", "--since", "2026-01-01T00:00", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not there: `kgs monitor` makes it and publishes to it" in done.stderr
