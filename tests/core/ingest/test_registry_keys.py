"""Keys whose schemas a registry has: columns of them beside those of the value, and what is bad of a key."""

import json
from uuid import UUID

import pyarrow as pa
import pytest
from confluent_kafka.cimpl import Message

from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.ingest.worker import sorted_records
from kgs_core.ingest.worker.sorted_records import TopicJob, sort_records
from kgs_core.lake.files.row_schema import parsed_schema
from kgs_core.model import TopicId
from kgs_core.ports.registry import SchemaKind
from kgs_core.registry.stub import running_registry
from tests.core.ingest.avro_values import encoded, record
from tests.protobuf_values import field, file_of, message_class, registered_text

ORDER = file_of(f'message_type {{ name: "Order" {field("f0", 1, "INT64")} {field("f1", 2, "STRING")} }}')
AVRO = record("long", "string")
JSON = {"type": "object", "properties": {"f0": {"type": "integer"}, "f1": {"type": "string"}}}
KINDS = {"avro": SchemaKind.AVRO, "protobuf": SchemaKind.PROTOBUF, "json_schema": SchemaKind.JSON}
SCHEMAS = {"avro": json.dumps(AVRO), "protobuf": registered_text(ORDER), "json_schema": json.dumps(JSON)}
INLINE = '{"type": "record", "name": "v", "fields": [{"name": "a", "type": "long"}]}'
JSON_VALUES = {"format": "json", "schema": {"a": "long"}}


@pytest.fixture
def registry():
    with running_registry() as found:
        yield found


def written(kind, f0, f1):
    if kind == "avro":
        return encoded(AVRO, {"f0": f0, "f1": f1})
    if kind == "protobuf":
        return message_class(ORDER, "p.Order")(f0=f0, f1=f1).SerializeToString()
    return json.dumps({"f0": f0, "f1": f1}).encode()


def framed(kind, number, payload):
    return b"\0" + number.to_bytes(4, "big") + (b"\0" if kind == "protobuf" else b"") + payload


def sort(registry, kind, *records, columns=None, values=JSON_VALUES):
    """Rows and dead letters of records, each (value, key, headers)."""
    rule = TopicRule.model_validate({"topic": "t", "key_format": kind, "key_schema": {"f0": "long"}, **values})
    messages = [
        Message(topic="t", partition=0, offset=i, value=value, key=key, headers=headers, timestamp=(1, i))
        for i, (value, key, headers) in enumerate(records)
    ]
    of = RegistrySettings(url=registry.url)
    schema = parsed_schema(rule, columns) if columns is not None else parsed_schema(rule)
    job = TopicJob("t", TopicId("id"), rule, "t", "t_dl", schema, {}, columns=columns, registry=of)
    return sort_records(job, records_of(messages))


@pytest.mark.parametrize("kind", KINDS)
def test_keys_become_columns_beside_those_of_the_value(registry, kind):
    number = registry.register("t-key", SCHEMAS[kind], KINDS[kind])
    found = sort(
        registry,
        kind,
        (b'{"a": 1}', framed(kind, number, written(kind, 7, "x")), None),
        (b'{"a": 2}', None, None),
        (b"bad", framed(kind, number, written(kind, 8, "y")), None),
        (b'{"a": 3}', framed(kind, number, written(kind, 2**40, "z")), None),
    )
    assert found.rows.select(["a", "key_f0"]).to_pylist() == [
        {"a": 1, "key_f0": 7},
        {"a": 2, "key_f0": None},
        {"a": 3, "key_f0": 2**40},
    ]
    assert found.dead_letters["_offset"].to_pylist() == [2]
    assert found.missing.names == []  # what of a key has no column is none that the table lacks


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_of_a_key_stands_in_a_header_of_its_own(registry, kind):
    number = registry.register("t-key", SCHEMAS[kind], KINDS[kind])
    rest = b"\0" if kind == "protobuf" else b""
    mine = ("__key_schema_id", b"\1" + UUID(registry.guid(number)).bytes + rest)
    of_the_value = ("__value_schema_id", b"\0\xff\xff\xff\xff")
    found = sort(
        registry,
        kind,
        (b"{}", written(kind, 7, "x"), [of_the_value, mine]),
        (b"{}", written(kind, 8, "x"), [("__key_schema_id", b"no")]),
    )
    assert found.rows["key_f0"].to_pylist() == [7]
    assert found.dead_letters["error"].to_pylist() == [
        "[no_schema] key: header __key_schema_id: holds no schema's id or GUID"
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_bad_of_a_key_is_bad_for_its_record_alone(registry, kind, monkeypatch):
    monkeypatch.setattr(sorted_records, "UNKNOWN_SCHEMA_S", 0.0)
    number = registry.register("t-key", SCHEMAS[kind], KINDS[kind])
    another = next(name for name in KINDS if name != kind)
    other = registry.register("o-key", SCHEMAS[another], KINDS[another])
    good = framed(kind, number, written(kind, 1, ""))
    keys = [b"", b"7", framed(kind, number, b"\xff"), framed(kind, 999, b""), framed(kind, other, b"\2"), good]
    found = sort(registry, kind, *((b"{}", key, None) for key in keys))
    assert found.rows["_offset"].to_pylist() == [5]
    errors = found.dead_letters["error"].to_pylist()
    assert all("] key: " in error for error in errors)
    codes = [error.split("]")[0].strip("[") for error in errors]
    broken = "not_json" if kind == "json_schema" else "malformed"
    assert codes == ["empty", "no_schema", broken, "no_schema", "no_schema"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_registry_that_does_not_answer_keeps_the_partition_waiting(registry, kind):
    number = registry.register("t-key", SCHEMAS[kind], KINDS[kind])
    registry.go_down()
    found = sort(
        registry, kind, (b'{"a": 1}', None, None), (b'{"a": 2}', framed(kind, number, written(kind, 1, "")), None)
    )
    assert found.rows["a"].to_pylist() == [1]
    assert found.dead_letters.num_rows == 0
    offset, why = found.cuts.waiting[0]
    assert offset == 1
    assert why.startswith("key: ")


def test_the_rules_own_schema_is_that_of_the_values_alone(registry):
    number = registry.register("t-key", SCHEMAS["avro"])
    value = encoded(json.loads(INLINE), {"a": 5})
    key = framed("avro", number, written("avro", 6, "k"))
    columns = pa.schema([("a", pa.int64())])
    values = {"format": "avro", "avro_schema": INLINE}
    found = sort(registry, "avro", (value, key, None), columns=columns, values=values)
    assert found.rows.select(["a", "key_f0"]).to_pylist() == [{"a": 5, "key_f0": 6}]
