"""JSON behind the frame of a registry to columns: what each type becomes, and whatever stands beside a value."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.errors import ConfigError
from kgs_core.ingest.formats.json.json_schema import columns_of, parse_json_schema
from kgs_core.ingest.formats.json.json_schema_types import columns_of_schema
from kgs_core.ingest.formats.parsed import UnusableSchemaError
from kgs_core.ingest.formats.widening import type_name
from kgs_core.ports.registry import RegisteredSchema, SchemaKind
from tests.json_schema_values import TYPES, batch_of, registered

PAGE = Path(__file__).parents[4] / "docs/formats.md"
INTEGER, STRING, NULL = {"type": "integer"}, {"type": "string"}, {"type": "null"}
ROWS = {  # as in docs/formats.md: a property, Delta's type
    "`string`": (STRING, "string"),
    "`string`, `format: date`": (STRING | {"format": "date"}, "date"),
    "`string`, `format: date-time`": (STRING | {"format": "date-time"}, "timestamp"),
    "`string`, `connect.type: bytes`": (STRING | {"connect.type": "bytes"}, "binary"),
    "`integer`": (INTEGER, "long"),
    "`integer`, `connect.type: int8`": (INTEGER | {"connect.type": "int8"}, "byte"),
    "`integer`, `connect.type: int16`": (INTEGER | {"connect.type": "int16"}, "short"),
    "`integer`, `connect.type: int32`": (INTEGER | {"connect.type": "int32"}, "int"),
    "`number`": ({"type": "number"}, "double"),
    "`number`, `connect.type: float32`": ({"type": "number", "connect.type": "float32"}, "float"),
    "`number`, Connect's `Decimal` of scale s": (
        {
            "type": "number",
            "title": "org.apache.kafka.connect.data.Decimal",
            "connect.type": "bytes",
            "connect.parameters": {"scale": "4"},
        },
        "decimal(38,s)",
    ),
    "`boolean`": ({"type": "boolean"}, "boolean"),
    "`array` with `items`": ({"type": "array", "items": INTEGER}, "array<T>"),
    "`object` with `properties`": ({"type": "object", "properties": {"a": INTEGER}}, "struct<...>"),
    "`object` with one type of `additionalProperties`": (
        {"type": "object", "additionalProperties": INTEGER},
        "map<string,T>",
    ),
    "`enum`, `const` of one type": ({"enum": ["a", "b", None]}, "string"),
}
KINDS = {"array<T>": "array<long>", "struct<...>": "struct<a: long>", "map<string,T>": "map<string,long>"}
ALIKE = {
    "nullable": {"type": ["null", "integer"]},
    "oneOf with null": {"oneOf": [NULL, INTEGER]},
    "anyOf with null": {"anyOf": [INTEGER, NULL]},
    "oneOf of one": {"oneOf": [INTEGER]},
    "definition": {"$ref": "#/definitions/Whole"},
    "$defs, escaped": {"$ref": "#/$defs/a~1b%20c"},
    "anchor": {"$ref": "#whole"},
    "by its $id": {"$ref": "https://example.org/whole"},
    "allOf of one": {"allOf": [{"$ref": "#/definitions/Whole"}, {"minimum": 3}]},
    "demands of one type": {"type": "integer", "oneOf": [{"minimum": 3}, {"maximum": 1}]},
    "const": {"const": 5},
}
DEFINITIONS = {
    "definitions": {"Whole": INTEGER, "other": INTEGER | {"$id": "https://example.org/whole"}},
    "$defs": {"a/b c": INTEGER, "n": INTEGER | {"$anchor": "whole"}},
}
UNFIT = {
    "anything": ({}, "may be of any type"),
    "true": (True, "may be anything"),
    "two types": ({"type": ["string", "integer"]}, "has several types"),
    "a choice": ({"oneOf": [STRING, INTEGER]}, "has several types"),
    "only null": (NULL, "is always null"),
    "any object": ({"type": "object"}, "is an object of any fields"),
    "any array": ({"type": "array"}, "is an array of anything"),
    "a tuple": ({"type": "array", "items": [STRING, INTEGER]}, "is an array of anything"),
    "no such type": ({"type": "int"}, "is of type int, which JSON Schema does not have"),
    "itself": ({"$ref": "#"}, "contains itself"),
    "no definition": ({"$ref": "#/definitions/x"}, "refers to #/definitions/x, which is not there"),
    "no reference": ({"$ref": "x.json"}, "refers to x.json, which its references lack"),
    "allOf of two": (
        {"allOf": [{"properties": {"a": STRING}}, {"properties": {"a": INTEGER}}]},
        "field x.a has two types",
    ),
}
V1 = {"type": "object", "properties": {"id": INTEGER | {"connect.type": "int32"}, "price": {"type": "number"}}}
V2 = {
    "type": "object",
    "properties": {"id": INTEGER, "price": {"type": "number"}, "note": {"type": ["null", "string"]}},
}
ORDERS = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("note", pa.string())])


def of(registry):
    return RegistrySettings(url=registry.url)


def columns_by(registry, topic="t"):
    return columns_of(topic, TopicRule(topic="t", format="json_schema"), of(registry))


def framed(number, value):
    return b"\0" + number.to_bytes(4, "big") + (value if isinstance(value, bytes) else json.dumps(value).encode())


def parse(registry, values, columns=ORDERS, headers=None):
    return parse_json_schema(batch_of(values, columns, of(registry), headers))


def property_columns(node, **more):
    schema = {"type": "object", "properties": {"x": node}, **more}
    return columns_of_schema(RegisteredSchema(1, SchemaKind.JSON, json.dumps(schema)))


@pytest.mark.parametrize("name", ROWS)
def test_every_type_becomes_the_column_that_the_documentation_says(name):
    node, kind = ROWS[name]
    assert type_name(property_columns(node).field("x").type) == KINDS.get(kind, kind).replace("s)", "4)")


def test_table_of_types_in_the_documentation_is_this_one():
    part = PAGE.read_text().split("## JSON Schema")[1].split("\n## ")[0]
    assert re.findall(r"^\| (.*?) \| .*? \| `(.*?)` \|", part, re.MULTILINE) == [(n, k) for n, (_, k) in ROWS.items()]


@pytest.mark.parametrize("name", ALIKE)
def test_many_ways_of_saying_integer_are_one_column(name):
    assert property_columns(ALIKE[name], **DEFINITIONS) == pa.schema([("x", pa.int64())])


@pytest.mark.parametrize("name", UNFIT)
def test_type_that_no_column_has_is_refused_in_words(name):
    node, words = UNFIT[name]
    with pytest.raises(UnusableSchemaError) as refused:
        property_columns(node)
    assert words in str(refused.value)


@pytest.mark.parametrize("text", ["{", "[]", "true", '{"type": "string"}', '{"type": "object"}', '{"$ref": "#"}'])
def test_schema_that_is_not_of_an_object_is_refused(text):
    with pytest.raises(UnusableSchemaError):
        columns_of_schema(RegisteredSchema(1, SchemaKind.JSON, text))


def test_wide_and_deep_schemas_end():
    bomb = {
        f"d{n}": {"type": "object", "properties": {key: {"$ref": f"#/$defs/d{n + 1}"} for key in "abcd"}}
        for n in range(9)
    }
    with pytest.raises(UnusableSchemaError, match="more than 5000"):
        property_columns({"$ref": "#/$defs/d0"}, **{"$defs": bomb | {"d9": STRING}})
    text = '{"items":' * 100_000 + "{}" + "}" * 100_000
    with pytest.raises(UnusableSchemaError):
        columns_of_schema(RegisteredSchema(1, SchemaKind.JSON, text))


def test_columns_of_a_topic_with_references(registry):
    registered(registry, "all-value")
    found = columns_by(registry, "all")
    assert {each.name: type_name(each.type) for each in found} == TYPES
    assert all(each.nullable for each in found)


def test_fields_that_the_columns_lack_are_missing_and_those_that_cannot_be_columns_are_not(registry):
    V3 = {"type": "object", "properties": V2["properties"] | {"any": {}}}  # noqa: N806
    number = registered(registry, "more-value", V3)
    found = parse(registry, [framed(number, {"id": 1})], pa.schema([("id", pa.int64())]))
    assert found.missing == pa.schema([("price", pa.float64()), ("note", pa.string())])
    assert parse(registry, [framed(number, b"{")], pa.schema([("id", pa.int64())])).missing == pa.schema([])
    nested = {"type": "object", "properties": {"of": {"type": "object", "properties": V2["properties"]}}}
    number = registered(registry, "nested-value", nested)
    found = parse(registry, [framed(number, {"of": {"id": 1}})], pa.schema([("of", pa.struct({"id": pa.int64()}))]))
    assert found.missing == pa.schema([("of", pa.struct({"price": pa.float64(), "note": pa.string()}))])
    with pytest.raises(ConfigError, match="field any may be of any type: give the rule a schema"):
        columns_by(registry, "more")
