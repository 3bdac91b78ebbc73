"""Several topics into one table, with real consumers: killed at each commit, two at once, topics that come meanwhile.

With processes, since it is about what is in the table when one of them is gone.
"""

import json
import signal
import struct
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.registry_stub import StubRegistry, running_registry
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.ports.registry import SchemaKind
from tests.failpoints import crash_at
from tests.protobuf_values import field, file_of, message_class, registered_text
from tests.system.pipeline import COMBINED, JSON_FIELDS, Pipeline, fingerprint, json_values, produce, read_log
from tests.system.test_registry_faults import framed
from tests.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.slow(60), pytest.mark.timeout(600)]
POINTS = ("after-dead-letter-commit", "before-commit", "after-commit")
"""Before these it is as with a topic alone: `test_crashes.py`."""
AVRO = {"type": "record", "name": "R", "fields": [{"name": "i", "type": "long"}, {"name": "s", "type": "string"}]}
PROTOBUF = file_of(f'message_type {{ name: "R" {field("i", 1, "INT64")} {field("s", 2, "STRING")} }}')
JSON_SCHEMA = {"type": "object", "properties": {"i": {"type": "integer"}, "s": {"type": "string"}}}
FORMATS = ("avro", "protobuf", "json_schema")


def assert_exact(pipeline: Pipeline, topics: list[str], table: str) -> None:
    """Table and dead letters hold what an independent read of the topics' logs gives, each under its topic's id."""
    ids = pipeline.admin.topic_ids(topics)
    log = Counter(
        (str(ids[topic]), p, o, fingerprint(value))
        for topic in topics
        for p, o, value in read_log(pipeline.bootstrap, pipeline.admin, topic)
    )
    found = Counter(
        (row["_topic_id"], row["_partition"], row["_offset"], fingerprint(row["value"]))
        for row in pipeline.rows(f"{table}_dead_letters")
    )
    names = {str(topic_id): topic for topic, topic_id in ids.items()}
    for row in pipeline.rows(table):
        assert row["topic"] == names[row["_topic_id"]]
        value = json.dumps({"i": row["i"], "s": row["s"]}).encode()
        found[(row["_topic_id"], row["_partition"], row["_offset"], fingerprint(value))] += 1
    assert found == log


def test_killed_at_each_commit_and_two_at_once(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> None:
    """At last two consumers that both believe they own all of it, one committing by itself and one for both."""
    topics = [f"{topic_prefix}shared-{name}" for name in "abc"]
    rule = {"pattern": f"{topic_prefix}shared-.*", "table": "bronze/all", "topic_column": "topic"}
    pipeline = Pipeline(
        tmp_path,
        kafka.bootstrap_servers,
        [{**rule, "format": "json", "schema": JSON_FIELDS}],
        batch_bytes=20_000,
    )
    for topic in topics:
        pipeline.admin.create_topic(topic, 2)
    produced = 0

    def send() -> None:
        nonlocal produced
        for topic in topics:
            values = (v if i % 50 else b"not json" for i, v in enumerate(json_values(produced, 600)))
            produce(pipeline.bootstrap, topic, values)
        produced += 600

    for point in POINTS:
        send()
        with pipeline.consumer(**crash_at(f"{point}:3", tmp_path)) as consumer:
            wait_until(lambda: consumer.process.poll() is not None, 60, f"dead at {point}: {consumer.tail()}")
            assert consumer.process.returncode == -signal.SIGKILL, consumer.tail()
        assert (tmp_path / point).exists()
    with pipeline.consumer(1, **COMBINED) as first, pipeline.consumer(2) as second:
        logs = lambda: first.log.read_text() + second.log.read_text()  # noqa: E731
        for _ in range(20):
            send()
            if "refused topic=" in logs():
                break
        wait_until(lambda: "refused topic=" in logs(), 60, "they met")
        first.destroy()
        pipeline.wait_caught_up(topics)
        second.terminate()
    assert_exact(pipeline, topics, "bronze/all")
    pipeline.assert_audit_is_clean()


def test_topics_of_each_registry_format_that_come_while_a_consumer_runs(
    kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    """They are read within `topics_refresh_s`, and come into the table of those that were there."""
    message = message_class(PROTOBUF, "p.R")
    schemas: dict[str, tuple[str, SchemaKind, Callable[[int, dict[str, object]], bytes]]] = {
        "avro": (json.dumps(AVRO), SchemaKind.AVRO, lambda id_, row: framed(id_, AVRO, row)),
        "protobuf": (
            registered_text(PROTOBUF),
            SchemaKind.PROTOBUF,
            lambda id_, row: b"\0" + struct.pack(">i", id_) + b"\0" + message(**row).SerializeToString(),
        ),
        "json_schema": (
            json.dumps(JSON_SCHEMA),
            SchemaKind.JSON,
            lambda id_, row: b"\0" + struct.pack(">i", id_) + json.dumps(row).encode(),
        ),
    }

    def add(pipeline: Pipeline, registry: StubRegistry, name: str, kind: str) -> str:
        topic = f"{topic_prefix}{kind}-{name}"
        text, of_kind, encode = schemas[kind]
        id_ = registry.register(f"{topic}-value", text, of_kind)
        pipeline.admin.create_topic(topic, 1)
        produce(pipeline.bootstrap, topic, (encode(id_, {"i": i, "s": f"{topic} {i}"}) for i in range(100)))
        return topic

    rules = [
        {"pattern": f"{topic_prefix}{kind}-.*", "table": "all", "format": kind, "topic_column": "topic"}
        for kind in FORMATS
    ]
    refresh_s = 2.0
    with running_registry() as registry:
        pipeline = Pipeline(tmp_path, kafka.bootstrap_servers, rules, registry=registry.url, topics_refresh_s=refresh_s)
        topics = [add(pipeline, registry, "before", "avro")]
        with pipeline.consumer() as consumer:
            pipeline.wait_caught_up(topics)
            for kind in FORMATS:
                began = time.monotonic()
                topics.append(add(pipeline, registry, "after", kind))
                pipeline.wait_caught_up(topics)
                # A busy machine may be slow at everything else; the wait alone could not tell 2 s from 60
                assert time.monotonic() - began < refresh_s + 10, consumer.tail()
            consumer.terminate()
        rows = Counter((row["topic"], row["i"], row["s"]) for row in pipeline.rows("all"))
        assert rows == Counter((topic, i, f"{topic} {i}") for topic in topics for i in range(100))
        pipeline.assert_audit_is_clean()
