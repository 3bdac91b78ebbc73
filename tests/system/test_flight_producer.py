"""The flight replay on a real broker: what the tally says is what the log holds."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition

from kgs_core.cli.local.generate import generate
from kgs_core.demo.replay import PARTITIONS, TOPICS, open_replay
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.paced_producer import FlightProducer
from kgs_core.system.shutdown import StopFlag
from tests.waiting import wait_until


def end_offsets(kafka, topics):
    """Records ever written, by "topic:partition", of the partitions that have any."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "unused"})
    try:
        ends = {
            f"{topic}:{partition}": consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)[1]
            for topic in topics
            for partition in range(PARTITIONS)
        }
    finally:
        consumer.close()
    return {name: end for name, end in ends.items() if end}


def grown(before, after):
    return {name: end - before.get(name, 0) for name, end in after.items() if end > before.get(name, 0)}


@pytest.fixture
def own_topics(kafka):
    """The replay's topics under a prefix of this test's own."""
    prefix = f"{uuid.uuid4().hex[:8]}."
    admin = KafkaAdmin({"bootstrap.servers": kafka.bootstrap_servers})
    for topic in TOPICS:
        admin.create_topic(prefix + topic, PARTITIONS, 1, {})
    return prefix


def test_tally_is_what_the_log_holds(kafka, own_topics, tmp_path):
    replay = open_replay()
    started = time.process_time()

    def due(from_s, to_s):  # from 12:00 on
        return [(own_topics + r.topic, r.key, r.value) for r in replay.due(from_s + 70, to_s + 70)]

    producer = FlightProducer({"bootstrap.servers": kafka.bootstrap_servers}, tmp_path / "tally.json")
    tally = producer.run(due, StopFlag(), seconds=5)
    busy = (time.process_time() - started) / 5
    report = json.loads((tmp_path / "tally.json").read_text())
    expected = list(replay.due(70, 75))
    print(f"{sum(report['bytes'].values()) / 5e6:.2f} MB/s with {busy:.0%} of a core")
    assert report["finished"]
    assert report["failed"] == 0
    assert report["partitions"] == end_offsets(kafka, [own_topics + topic for topic in TOPICS])
    assert sum(report["records"].values()) == tally.delivered == len(expected)
    assert sum(report["bytes"].values()) == sum(len(record.value) for record in expected)
    assert len(report["partitions"]) >= 3 * PARTITIONS


def test_command_creates_its_topics_and_ends_in_time(kafka, tmp_path):
    tally_file = tmp_path / "tally.json"
    arguments = ["--bootstrap-servers", kafka.bootstrap_servers, "--tally", str(tally_file), "--seconds", "2"]
    started = time.monotonic()
    result = CliRunner().invoke(generate, [*arguments, "--start-at", "12:00"])
    assert result.exit_code == 0, result.output
    assert time.monotonic() - started < 60
    before = end_offsets(kafka, TOPICS)
    assert json.loads(tally_file.read_text())["replayed_s"] == 2
    # Topics that are there already are kept as they are.
    again = CliRunner().invoke(generate, [*arguments, "--start-at", "18:00"])
    assert again.exit_code == 0, again.output
    assert json.loads(tally_file.read_text())["partitions"] == grown(before, end_offsets(kafka, TOPICS))


def test_sigterm_ends_it_with_every_record_answered(kafka, tmp_path):
    CliRunner().invoke(generate, ["--bootstrap-servers", kafka.bootstrap_servers, "--seconds", "0.1"])
    before = end_offsets(kafka, TOPICS)
    tally_file = tmp_path / "tally.json"
    program = "from kgs_core.cli.local.generate import generate; generate()"
    arguments = ["--bootstrap-servers", kafka.bootstrap_servers, "--tally", tally_file, "--start-at", "12:00"]
    process = subprocess.Popen([sys.executable, "-c", program, *arguments])
    try:
        wait_until(
            lambda: tally_file.exists() and sum(json.loads(tally_file.read_text())["records"].values()) > 1000,
            60,
            "no records within 60 s",
        )
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    report = json.loads(tally_file.read_text())
    assert report["finished"]
    assert report["failed"] == 0
    assert report["partitions"] == grown(before, end_offsets(kafka, TOPICS))
