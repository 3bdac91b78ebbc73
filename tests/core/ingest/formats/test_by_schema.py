"""Values and keys whose schemas a registry has, in each of its formats: what is good, what is bad, and what waits."""

import json
from uuid import UUID

import pyarrow as pa
import pytest
from confluent_kafka.cimpl import Message

from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.errors import ConfigError, TransientError
from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.ingest.worker import sorted_records
from kgs_core.ingest.worker.parsed_records import parse_records
from kgs_core.ingest.worker.topic_job import load_hook
from kgs_core.ports.registry import SchemaKind
from tests.core.ingest.avro_values import encoded, record
from tests.faulty_registry import running_registry
from tests.processing import sorted_of
from tests.protobuf_values import field, file_of, message_class, registered_text
from tests.topic_jobs import topic_job

OLD = file_of(f'message_type {{ name: "Order" {field("f0", 1, "INT32")} }}')
NEW = file_of(f'message_type {{ name: "Order" {field("f0", 1, "INT64")} {field("f1", 2, "STRING")} }}')
JSON = {"type": "object", "properties": {"f0": {"type": "integer"}}}
KINDS = {"avro": SchemaKind.AVRO, "protobuf": SchemaKind.PROTOBUF, "json_schema": SchemaKind.JSON}
SCHEMAS = {
    "avro": [json.dumps(record("int")), json.dumps(record("long", "string"))],
    "protobuf": [registered_text(OLD), registered_text(NEW)],
    "json_schema": [
        json.dumps(JSON),
        json.dumps({"type": "object", "properties": JSON["properties"] | {"f1": {"type": "string"}}}),
    ],
}
F1 = {"f1": "x"}
INLINE = '{"type": "record", "name": "v", "fields": [{"name": "a", "type": "long"}]}'
KINDS_AND_PARTS = [(kind, part) for kind in KINDS for part in ("value", "key")]


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(sorted_records, "UNKNOWN_SCHEMA_S", 0.0)
    with running_registry() as found:
        yield found


def written(kind, f0, **more):
    """A value of the newer schema where it has more fields than one."""
    if kind == "avro":
        return encoded(record("long", "string") if more else record("int"), {"f0": f0, **more})
    if kind == "protobuf":
        return message_class(NEW if more else OLD, "p.Order")(f0=f0, **more).SerializeToString()
    return json.dumps({"f0": f0, **more}).encode()


def framed(kind, number, payload):
    return b"\0" + number.to_bytes(4, "big") + (b"\0" if kind == "protobuf" else b"") + payload


def settings_of(registry):
    return RegistrySettings(url=registry.url)


def sort(registry, kind, part, *payloads, headers=None):
    """Rows and dead letters of records whose values, or keys, are these."""
    return sorted_of(*given(registry, kind, part, *payloads, headers=headers))


def given(registry, kind, part, *payloads, headers=None):
    """A job, and records of it."""
    of_key = {"format": "json", "schema": {"a": "long"}, "key_format": kind, "key_schema": {"f0": "long"}}
    rule = of_key if part == "key" else {"format": kind, "schema": {"f0": "long"}}
    messages = [
        Message(
            **{"topic": "t", "partition": 0, "offset": i, "timestamp": (1, i), "value": b"{}", part: payload},
            headers=headers and headers[i],
        )
        for i, payload in enumerate(payloads)
    ]
    return topic_job(rule, registry=settings_of(registry)), records_of(messages)


def numbers(found, part):
    return found.rows["key_f0" if part == "key" else "f0"].to_pylist()


@pytest.mark.parametrize(("kind", "part"), KINDS_AND_PARTS)
def test_two_schemas_mixed_are_rows_in_order(registry, kind, part):
    old, new = (registry.register(f"t-{part}", text, KINDS[kind]) for text in SCHEMAS[kind])
    values = [framed(kind, new, written(kind, 2**40, **F1)), framed(kind, old, written(kind, 1)), None]
    job, records = given(registry, kind, part, *values, framed(kind, new, written(kind, 3, **F1)))
    found = sorted_of(job, records)
    assert numbers(found, part) == ([2**40, 1, None, 3] if part == "key" else [2**40, 1, 3])
    assert found.dead_letters["_offset"].to_pylist() == ([] if part == "key" else [2])
    missing = parse_records(job.plan, records).missing.names
    assert missing == ([] if part == "key" else ["f1"]), "what of a key has no column is none that lacks"


@pytest.mark.parametrize(("kind", "part"), KINDS_AND_PARTS)
def test_the_schema_may_stand_in_a_header_of_its_own(registry, kind, part):
    number = registry.register(f"t-{part}", SCHEMAS[kind][0], KINDS[kind])
    rest = b"\0" if kind == "protobuf" else b""
    mine, others = f"__{part}_schema_id", "__key_schema_id" if part == "value" else "__value_schema_id"
    names = [b"\1" + UUID(registry.guid(number)).bytes + rest, b"\0" + number.to_bytes(4, "big") + rest, b"no"]
    headers = [[(others, b"\0\xff\xff\xff\xff"), (mine, name)] for name in names]
    found = sort(registry, kind, part, *(written(kind, n) for n in (7, 8, 9)), headers=headers)
    assert numbers(found, part) == [7, 8]
    where = "key: " if part == "key" else ""
    (error,) = found.dead_letters["error"].to_pylist()
    assert error == f"[no_schema] {where}header {mine}: holds no schema's id or GUID"


@pytest.mark.parametrize(("kind", "part"), KINDS_AND_PARTS)
def test_what_is_bad_is_bad_for_its_record_alone(registry, kind, part):
    number = registry.register(f"t-{part}", SCHEMAS[kind][0], KINDS[kind])
    another = next(name for name in KINDS if name != kind)
    other = registry.register("o-value", SCHEMAS[another][0], KINDS[another])
    good, broken = framed(kind, number, written(kind, 1)), framed(kind, number, b"\xff")
    values = [b"", b"7", broken, framed(kind, 999, b""), framed(kind, other, b"\2"), good]
    found = sort(registry, kind, part, *values)
    assert found.rows["_offset"].to_pylist() == [5]
    errors = found.dead_letters["error"].to_pylist()
    assert all(("] key: " in error) is (part == "key") for error in errors)
    codes = [error.split("]")[0].strip("[") for error in errors]
    assert codes == ["empty", "no_schema", "not_json" if kind == "json_schema" else "malformed", *["no_schema"] * 2]
    assert "has no schema 999" in errors[3]
    assert f"schema {other} is of kind {KINDS[another]}, not {KINDS[kind]}" in errors[4]


@pytest.mark.parametrize(("kind", "part"), KINDS_AND_PARTS)
def test_a_registry_that_does_not_answer_keeps_the_partition_waiting(registry, kind, part):
    known = registry.register(f"t-{part}", SCHEMAS[kind][0], KINDS[kind])
    good = framed(kind, known, written(kind, 1))
    sort(registry, kind, part, good)
    registry.go_down()
    found = sort(registry, kind, part, good, b"bad", framed(kind, known + 1, b""), good)
    assert (numbers(found, part), found.dead_letters["_offset"].to_pylist()) == ([1], [1])
    offset, why, _ = found.cuts[0]
    assert (offset, why.startswith("key: ")) == (2, part == "key")


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_those_of_the_newest_schema(registry, kind):
    def columns():
        return load_hook(FORMATS[kind].columns_of)("t", TopicRule(topic="t", format=kind), settings_of(registry))

    with pytest.raises(ConfigError, match=r"subject t-value.*or give the rule a schema"):
        columns()
    for text, names in zip(SCHEMAS[kind], (["f0"], ["f0", "f1"]), strict=True):
        registry.register("t-value", text, KINDS[kind])
        assert columns().names == names
    registry.go_down()
    with pytest.raises(TransientError):
        columns()


def test_the_rules_own_schema_is_that_of_the_values_alone(registry):
    number = registry.register("t-key", SCHEMAS["avro"][0])
    rule = {"format": "avro", "avro_schema": INLINE, "key_format": "avro", "key_schema": {"f0": "long"}}
    job = topic_job(rule, pa.schema([("a", pa.int64())]), registry=settings_of(registry))
    key, value = framed("avro", number, written("avro", 6)), encoded(json.loads(INLINE), {"a": 5})
    found = sorted_of(job, records_of([Message(topic="t", offset=0, value=value, key=key)]))
    assert found.rows.select(["a", "key_f0"]).to_pylist() == [{"a": 5, "key_f0": 6}]
