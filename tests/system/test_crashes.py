"""Killed at every named point, frozen and thawed, two at once: nothing lost, nothing doubled.

In the consumer's process, by the functions that Spark's workers call. On Spark: what its workers alone do, fetching and
writing DataFrames, and two consumers at once.
"""

import os
import signal
from pathlib import Path

import pytest

from bench.object_servers import ObjectServer
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.lake.files.storage import Storage
from tests.failpoints import crash_at
from tests.system.pipeline import COMBINED, JSON_FIELDS, Pipeline, json_values, produce
from tests.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.slow(60), pytest.mark.timeout(600)]
RULE = {"format": "json", "schema": JSON_FIELDS}
POINTS = (
    "fetched",
    "written",
    "after-dead-letter-commit",
    "before-commit",
    "after-commit",
    "intent-left",
    "entry-made",
)


def mixed_values(first: int, count: int) -> list[bytes]:
    """Good records and, every 50th, a bad one, so that the dead-letter table is written in every batch."""
    return [v if i % 50 else b"not json" for i, v in enumerate(json_values(first, count))]


def test_killed_at_every_point_in_turn(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> None:
    """Each life ends at the next point, in the second batch it gets there with; the last one lives on."""
    die_at_every_point(kafka, f"{topic_prefix}crash", tmp_path)


def test_killed_at_every_point_in_turn_with_a_lake_in_a_store(
    object_server: ObjectServer, kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    die_at_every_point(kafka, f"{topic_prefix}crash", tmp_path, object_server.storage("crash"))


def die_at_every_point(kafka: EmbeddedKafka, topic: str, folder: Path, storage: Storage | None = None) -> None:
    pipeline = Pipeline(
        folder, kafka.bootstrap_servers, [{"topic": topic, **RULE}], storage=storage, batch_bytes=20_000
    )
    pipeline.admin.create_topic(topic, 3)
    produced = 0
    for point in POINTS:
        produced += produce(kafka.bootstrap_servers, topic, mixed_values(produced, 3000))
        die_at(pipeline, point, **COMBINED)
    with pipeline.consumer(**COMBINED) as consumer:
        pipeline.wait_caught_up([topic])
        consumer.terminate()
    pipeline.assert_exact(topic, raw=False)
    pipeline.assert_audit_is_clean()
    assert len(pipeline.rows(f"{topic}_dead_letters")) == produced // 50


def die_at(pipeline: Pipeline, point: str, **environ: str) -> None:
    """One life, which ends at its second time there."""
    with pipeline.consumer(**crash_at(f"{point}:2", pipeline.folder), **environ) as consumer:
        wait_until(lambda: consumer.process.poll() is not None, 60, f"dead at {point}: {consumer.tail()}")
        assert consumer.process.returncode == -signal.SIGKILL, consumer.tail()
    assert (pipeline.folder / point).exists()


def test_frozen_before_its_commit_while_another_takes_over(
    kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    """What the frozen one holds is in the lake when it wakes up; it must land nothing of it, and go on."""
    topic = f"{topic_prefix}frozen"
    pipeline = Pipeline(tmp_path, kafka.bootstrap_servers, [{"topic": topic, **RULE}], batch_bytes=20_000)
    pipeline.admin.create_topic(topic, 2)
    produced = produce(kafka.bootstrap_servers, topic, mixed_values(0, 3000))
    with pipeline.consumer(1, **crash_at("before-commit:3", tmp_path, "STOP"), **COMBINED) as frozen:
        wait_until((tmp_path / "before-commit").exists, 60, f"frozen: {frozen.tail()}")
        with pipeline.consumer(2, **COMBINED) as other:
            pipeline.wait_caught_up([topic])
            os.killpg(frozen.process.pid, signal.SIGCONT)
            wait_until(lambda: "refused topic=" in frozen.log.read_text(), 30, f"refused: {frozen.tail()}")
            produced += produce(kafka.bootstrap_servers, topic, mixed_values(produced, 3000))
            pipeline.wait_caught_up([topic])
            other.terminate()
        produced += produce(kafka.bootstrap_servers, topic, mixed_values(produced, 1000))
        pipeline.wait_caught_up([topic])
        frozen.terminate()
    pipeline.assert_exact(topic, raw=False)
    pipeline.assert_audit_is_clean()


@pytest.mark.spark
def test_killed_with_written_dataframes_then_two_consumers_that_both_own_everything(
    kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    """Wasteful, and exact all the same; one of them is killed on the way."""
    topics = [f"{topic_prefix}both-{name}" for name in ("a", "b")]
    rules = [{"topic": topics[0]}, {"topic": topics[1], **RULE, "transform": "hooks:spark_double"}]
    pipeline = Pipeline(tmp_path, kafka.bootstrap_servers, rules, batch_bytes=20_000)
    for topic in topics:
        pipeline.admin.create_topic(topic, 3)
    produced = produce(kafka.bootstrap_servers, topics[1], mixed_values(0, 3000))
    die_at(pipeline, "written")
    with pipeline.consumer(1, **COMBINED) as first, pipeline.consumer(2) as second:
        for round_ in range(10):
            for topic in topics:
                produce(kafka.bootstrap_servers, topic, json_values(produced + round_ * 1000, 1000))
            if round_ == 5:
                wait_until(lambda: sum(map(bool, pipeline.positions(topics).values())) > 3, 60, "both at work")
        logs = lambda: first.log.read_text() + second.log.read_text()  # noqa: E731
        wait_until(lambda: "refused topic=" in logs(), 60, "they met")
        first.destroy()
        pipeline.wait_caught_up(topics)
        second.terminate()
    pipeline.assert_exact(topics[0])
    pipeline.assert_exact(topics[1], raw=False)
    pipeline.assert_audit_is_clean()
    assert len(pipeline.rows(f"{topics[1]}_dead_letters")) == produced // 50


@pytest.mark.spark
def test_python_worker_killed_is_survived_and_a_dead_jvm_ends_the_consumer(
    kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    """A driver without its JVM must not look alive."""
    topic = f"{topic_prefix}worker"
    pipeline = Pipeline(tmp_path, kafka.bootstrap_servers, [{"topic": topic}])
    pipeline.admin.create_topic(topic, 2)
    produce(kafka.bootstrap_servers, topic, json_values(0, 1000))
    with pipeline.consumer() as consumer:
        pipeline.wait_caught_up([topic])
        for member in consumer.process_handle.children(recursive=True):
            if member.is_running() and member.name().startswith("python"):
                member.kill()
        produce(kafka.bootstrap_servers, topic, json_values(1000, 1000))
        pipeline.wait_caught_up([topic])
        jvm = next(m for m in consumer.process_handle.children(recursive=True) if m.name() == "java")
        jvm.kill()
        wait_until(lambda: consumer.process.poll() is not None, 30, f"ended: {consumer.tail()}")
        assert consumer.process.returncode == 1
        assert "error: consumer 1" in consumer.tail()
    pipeline.assert_exact(topic)
