"""A registry that is away in the middle of a topic, and comes back: partitions wait, rows are there once, none is bad.

With a real broker and consumers, since it is about what is committed meanwhile, and who reads on after a kill.
"""

import io
import json
import struct
from pathlib import Path

import fastavro
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from tests.faulty_registry import running_registry
from tests.system.pipeline import Pipeline, json_values, produce, read_log

pytestmark = [pytest.mark.chaos, pytest.mark.slow(60), pytest.mark.timeout(600)]
FIELD = {"name": "i", "type": "long"}
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}
OLD = {"type": "record", "name": "R", "fields": [FIELD, {"name": "of", "type": INNER}]}
WIDER = INNER | {"fields": [*INNER["fields"], {"name": "y", "type": ["null", "string"]}]}
NEW = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "more", "type": "double"}, {"name": "of", "type": WIDER}, FIELD],
}
KEY = {"type": "record", "name": "K", "fields": [{"name": "unread", "type": "string"}, FIELD]}


def framed(number: int, schema: dict[str, object], row: dict[str, object]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return b"\0" + struct.pack(">i", number) + out.getvalue()


def test_a_registry_that_dies_and_returns_costs_no_row_and_makes_no_dead_letter(  # noqa: PLR0915 - one story
    kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    topic, other = f"{topic_prefix}avro", f"{topic_prefix}raw"
    of_keys = {"key_format": "avro", "key_schema": {"i": "long"}}
    rules = [{"topic": topic, "format": "avro", "evolve": "add_columns", **of_keys}, {"topic": other}]
    with running_registry() as registry:
        pipeline = Pipeline(tmp_path, kafka.bootstrap_servers, rules, registry=registry.url, batch_bytes=10_000)
        for each in (topic, other):
            pipeline.admin.create_topic(each, 2)
        old = registry.register(f"{topic}-value", json.dumps(OLD))
        of_key = registry.register(f"{topic}-key", json.dumps(KEY))

        def send(first: int, count: int, new: int | None = None) -> None:
            rows = ({"i": i, "of": {"x": -i, "y": f"y{i}"}, "more": i / 2} for i in range(first, first + count))
            values = (framed(old, OLD, r) if new is None or r["i"] % 3 else framed(new, NEW, r) for r in rows)
            keys = (framed(of_key, KEY, {"i": i, "unread": ""}) for i in range(first, first + count))
            produce(pipeline.bootstrap, topic, values, keys)

        send(0, 1000)
        with pipeline.consumer(1) as consumer:
            pipeline.wait_caught_up([topic])
            new = registry.register(f"{topic}-value", json.dumps(NEW))
            registry.go_down()
            send(1000, 1000, new)
            produce(pipeline.bootstrap, other, json_values(0, 500))
            reasons = consumer.wait_stopped(f"{topic}:0", f"{topic}:1")
            assert all("does not answer" in reason for reason in reasons.values()), reasons
            pipeline.wait_caught_up([other])
            consumer.destroy()
        assert not (pipeline.lake / f"{topic}_dead_letters").exists()
        known = len(pipeline.rows(topic))
        with pipeline.consumer(2) as consumer:
            produce(pipeline.bootstrap, other, json_values(500, 500))
            pipeline.wait_caught_up([other])
            assert len(pipeline.rows(topic)) == known
            registry.go_up()
            pipeline.wait_caught_up([topic])
            of_none = new + 1  # which it lacks as a registry that lags does
            producer = Producer({"bootstrap.servers": pipeline.bootstrap})
            key = framed(of_key, KEY, {"i": 2000, "unread": ""})
            producer.produce(topic, framed(of_none, OLD, {"i": 2000, "of": {"x": -2000}}), key=key, partition=0)
            assert producer.flush(30) == 0
            reasons = consumer.wait_stopped(f"{topic}:0")
            assert f"has no schema {of_none}" in str(reasons), reasons
            assert registry.register(f"{topic}-later", json.dumps(OLD | {"name": "Later"})) == of_none
            send(2001, 499, new)
            pipeline.wait_caught_up([topic])
            consumer.terminate()
    assert not (pipeline.lake / f"{topic}_dead_letters").exists()
    check(pipeline, topic, {old, of_none})
    pipeline.assert_exact(other)
    pipeline.assert_audit_is_clean()


def check(pipeline: Pipeline, topic: str, old: set[int]) -> None:
    """Every record once with its values."""
    columns = ["_partition", "_offset", "i", "key_i", "of", "more"]
    table = DeltaTable(str(pipeline.lake / topic)).to_pyarrow_table(columns=columns).to_pylist()
    rows = {(row["_partition"], row["_offset"]): row for row in table}
    log = {(p, o): value or b"" for p, o, value in read_log(pipeline.bootstrap, pipeline.admin, topic)}
    assert len(rows) == len(table) == 2500
    assert rows.keys() == log.keys()
    for place, row in rows.items():
        i, is_new = row["i"], struct.unpack(">i", log[place][1:5])[0] not in old
        assert row["key_i"] == i
        assert (row["of"], row["more"]) == ({"x": -i, "y": f"y{i}" if is_new else None}, i / 2 if is_new else None)
    assert sorted(row["i"] for row in table) == list(range(2500))
