"""The monitor on real brokers: against the files on their disks, under retention, after a kill."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.cimpl import Producer

from bench.load_shapes import RECORD_BYTES, KnownLoad, steady
from bench.segment_files import SegmentGrowth
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.kafka import kafka_python
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka.monitor import Monitor
from kgs_core.monitor.kafka.partition_sizes import PartitionSizes
from kgs_core.monitor.kafka.topic import load_history, topic_name
from kgs_core.monitor.speeds import Measure, Measurement, Verdict
from tests.system.monitoring import MONITOR, run_until, settings_of, tree_of
from tests.topics import delete_topic

KGS = str(Path(sys.executable).with_name("kgs"))
STORED = 1.015
"""Of a record's bytes: what it takes on the disk, with its part of a batch's header."""


@contextmanager
def process(config: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    command = [KGS, "monitor", "--config", str(config), "--json", *options]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        yield running
    finally:
        running.kill()
        running.wait(10)
        assert running.stdout is not None
        running.stdout.close()


def lines(running: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    assert running.stdout is not None
    for line in running.stdout:
        yield json.loads(line)


def test_speeds_are_the_growth_of_the_segment_files(kafka: EmbeddedKafka, admin: KafkaAdmin, topic_prefix: str) -> None:
    """Within 5 %, whatever the codec; by offsets and samples within 10 %. Both ways at once."""
    codecs = {"none": 400_000.0, "gzip": 300_000.0, "lz4": 200_000.0}
    tps = {codec: TopicPartition(f"{topic_prefix}{codec}", 0) for codec in codecs}
    folder = kafka.nodes[0].data
    with ExitStack() as running:
        for codec, tp in tps.items():
            admin.create_topic(tp.topic, 1)
            running.enter_context(KnownLoad(kafka.bootstrap_servers, tp.topic, steady(codecs[codec]), codec))
        growth = running.enter_context(SegmentGrowth(dict.fromkeys(tps.values(), folder)))
        settings = settings_of(kafka.bootstrap_servers, topic_prefix)
        monitors = []
        for way in (Measure.LOG_DIRS, Measure.OFFSETS):
            sizes = PartitionSizes(settings)
            sizes.measure = way
            monitors.append(running.enter_context(Monitor(settings, publish=False, sizes=sizes)))
        pool = running.enter_context(ThreadPoolExecutor(len(monitors)))
        by_size, by_offsets = pool.map(lambda one: run_until(one, lambda _: one.is_full), monitors)
    for found, verdict, error in ((by_size, Verdict.MEASURED, 0.05), (by_offsets, Verdict.ESTIMATED, 0.1)):
        last = found[-1]
        first = next(m for m in found if m.reading.time_s >= last.reading.time_s - MONITOR["window_s"])
        for codec, tp in tps.items():
            truth = growth.speed(tp, first.reading.partitions[tp].time_s, last.reading.partitions[tp].time_s)
            assert last.speeds[tp].verdict is verdict, last.speeds[tp]
            assert last.speeds[tp].bytes_per_s == pytest.approx(truth, rel=error), codec
        assert last.known[tps["gzip"]] < 0.8 * 300_000  # stored bytes, not those of the values


@pytest.fixture(scope="module")
def small_segments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker that looks for what to delete every second."""
    settings = {"log.retention.check.interval.ms": "1000", "log.initial.task.delay.ms": "3000"}
    with EmbeddedKafka.start(tmp_path_factory.mktemp("retention"), settings=settings, log=print) as kafka:
        yield kafka


@pytest.mark.slow
def test_retention_makes_no_speed_negative_or_wild(small_segments: EmbeddedKafka, topic_prefix: str) -> None:
    """At no time slower or faster than records came in the window, whatever pace the machine lets them come at."""
    admin = KafkaAdmin({"bootstrap.servers": small_segments.bootstrap_servers})
    cut = TopicPartition(f"{topic_prefix}cut", 0)
    config = {"segment.bytes": str(2**20), "retention.bytes": str(2**21), "file.delete.delay.ms": "100"}
    admin.create_topic(cut.topic, 1, config=config)
    bootstrap = small_segments.bootstrap_servers
    with (
        KnownLoad(bootstrap, cut.topic, steady(1_500_000.0)),
        Monitor(settings_of(bootstrap, topic_prefix), publish=False) as monitor,
    ):
        starts: set[int] = set()

        def cut_often(measurement: Measurement) -> bool:
            starts.add(measurement.reading.partitions[cut].log_start)
            return len(starts) > 8

        found = run_until(monitor, cut_often, 60)  # Kafka 3.6 first looks for what to delete after 30 s
    readings = [m.reading.partitions[cut] for m in found]
    shrunk = [m for m in found if m.speeds[cut].verdict is Verdict.SHRUNK]
    assert len(shrunk) > 5
    for m in shrunk:
        window = [r for r in readings if 0 <= m.reading.partitions[cut].time_s - r.time_s <= MONITOR["window_s"]]
        paces = [(b.end_offset - a.end_offset) / (b.offsets_s - a.offsets_s) for a, b in pairwise(window)]
        slowest, fastest = (RECORD_BYTES * STORED * pace for pace in (min(paces), max(paces)))
        assert 0.95 * slowest < m.known[cut] < 1.05 * fastest, (m.speeds[cut], paces)


@pytest.mark.chaos
def test_a_killed_monitor_goes_on_with_its_window(
    kafka: EmbeddedKafka, admin: KafkaAdmin, topic_prefix: str, tmp_path: Path
) -> None:
    config = tmp_path / "kgs.yaml"
    config.write_text(yaml.safe_dump(tree_of(kafka.bootstrap_servers, topic_prefix)))
    admin.create_topic(f"{topic_prefix}a", 1)
    with KnownLoad(kafka.bootstrap_servers, f"{topic_prefix}a", steady(200_000.0)):
        with process(config) as first:
            before = next(line for line in lines(first) if line["partitions"][0]["verdict"] == "measured")
            first.send_signal(signal.SIGKILL)
            first.wait(10)
        with process(config) as second:
            after = next(lines(second))
    assert after["partitions"][0]["verdict"] == "measured"
    assert after["total_bytes_per_s"] == pytest.approx(before["total_bytes_per_s"], rel=0.3)
    settings = settings_of(kafka.bootstrap_servers, topic_prefix)
    times = [measurement.reading.time_s for measurement in load_history(settings, admin, 1000)]
    assert times == sorted(times)


def test_what_is_no_measurement_is_left_out(kafka: EmbeddedKafka, admin: KafkaAdmin, topic_prefix: str) -> None:
    settings = settings_of(kafka.bootstrap_servers, topic_prefix)
    admin.create_topic(f"{topic_prefix}a", 1)
    with Monitor(settings, publish=True) as monitor:
        monitor.tick()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in (b'{"version":9}', b"\xff", None):
        producer.produce(topic_name(settings), value, "others")
    assert producer.flush(20) == 0
    assert len(load_history(settings, admin, 100)) == 1


def test_once_as_json(kafka: EmbeddedKafka, admin: KafkaAdmin, topic_prefix: str, tmp_path: Path) -> None:
    config = tmp_path / "kgs.yaml"
    config.write_text(yaml.safe_dump(tree_of(kafka.bootstrap_servers, topic_prefix, window_s=3.0)))
    for name in "ab":
        admin.create_topic(f"{topic_prefix}{name}", 2)
    with KnownLoad(kafka.bootstrap_servers, f"{topic_prefix}b", steady(200_000.0)), process(config, "--once") as once:
        (found,) = lines(once)
        assert once.wait(10) == 0
    assert len(found["partitions"]) == 4
    assert found["partitions"][0]["topic"] == f"{topic_prefix}b"
    assert found["partitions"][0]["share"] > 0.4
    assert {p["verdict"] for p in found["partitions"]} == {"measured"}
    assert topic_name(settings_of(kafka.bootstrap_servers, topic_prefix)) not in admin.list_topics()


def test_a_recreated_topic_is_reported_as_such(kafka: EmbeddedKafka, admin: KafkaAdmin, topic_prefix: str) -> None:
    tp = TopicPartition(f"{topic_prefix}a", 0)
    admin.create_topic(tp.topic, 1)
    with Monitor(settings_of(kafka.bootstrap_servers, topic_prefix), publish=False) as monitor:
        run_until(monitor, lambda m: tp in m.known)
        delete_topic(admin, tp.topic)
        assert monitor.tick().speeds[tp].verdict is Verdict.VANISHED
        admin.create_topic(tp.topic, 1)
        assert monitor.tick().speeds[tp].verdict is Verdict.RECREATED
        run_until(monitor, lambda m: m.speeds[tp].verdict is Verdict.MEASURED)


def test_a_broker_that_is_too_old_is_named_at_the_start(
    kafka: EmbeddedKafka, topic_prefix: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_of(kafka.bootstrap_servers, topic_prefix)
    for oldest, warned in ((kafka_python.OLDEST_TESTED, 0), ((99, 0), 1)):
        monkeypatch.setattr(kafka_python, "OLDEST_TESTED", oldest)
        kafka_python.warn_if_old.cache_clear()
        PartitionSizes(settings).close()
        assert sum("answers like Kafka" in line for line in caplog.messages) == warned, caplog.messages
