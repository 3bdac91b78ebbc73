"""`kgs consume` asked to end, during its start and after it: at once, with 0, and without a word of its libraries.

Real processes, Spark among them: whether the JVM that a start has begun is gone, and what pyspark says at an end, shows
nowhere else.
"""

import socket
import time
from pathlib import Path

import psutil
import pytest

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from tests.system.director import Director
from tests.system.pipeline import Pipeline
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow(10), pytest.mark.timeout(600)]


def closed_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def assert_ended_in_silence(process, family):
    assert "Traceback" not in process.log.read_text()
    assert "Error" not in process.log.read_text()
    assert psutil.wait_procs(family, timeout=10)[1] == []


def test_start_that_waits_for_a_broker_lives_and_ends_when_asked(tmp_path: Path):
    pipeline = Pipeline(tmp_path, f"127.0.0.1:{closed_port()}", [{"topic": "t"}])
    with pipeline.consumer() as process:
        wait_until(lambda: "cannot start yet, trying again" in process.log.read_text(), 60, "it waits")
        process.assert_alive()
        process.terminate()
        assert "Traceback" not in process.log.read_text()


@pytest.mark.parametrize("wait_s", [0.0, 2.0], ids=["JVM launched", "two seconds later"])
def test_signal_during_the_start_of_spark_ends_it_and_its_jvm(kafka: EmbeddedKafka, tmp_path: Path, wait_s: float):
    director = Director(Pipeline(tmp_path, kafka.bootstrap_servers, [{"topic": "t"}]))
    with director.consumer(1) as process:
        family = wait_until(lambda: process.process_handle.children(recursive=True), 60, "the JVM is launched")
        time.sleep(wait_s)  # how far the start has come: no result is waited for
        family = process.process_handle.children(recursive=True) or family
        process.terminate()
        assert "asked to end during the start" in process.log.read_text()
        assert_ended_in_silence(process, family)
    director.close()


def test_end_of_a_member_prints_no_traceback(kafka: EmbeddedKafka, tmp_path: Path):
    director = Director(Pipeline(tmp_path, kafka.bootstrap_servers, [{"topic": "t"}]))
    with director.consumer(1) as process:
        member = director.joined(process)
        family = process.process_handle.children(recursive=True)
        process.terminate()
        last = director.wait_ended(member)
        assert last.ending == "asked"
        assert_ended_in_silence(process, family)
    director.close()
