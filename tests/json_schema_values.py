"""A JSON Schema with types of all kinds, JSON values that mostly fit it, and ways to break them."""

import json

import pyarrow as pa

from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.ports.registry import SchemaKind

REFERENCED = {"$id": "https://example.org/shop/place.json", "definitions": {"Zip": {"type": "string"}}}
SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "whole": {"type": "integer"},
        "tiny": {"type": "integer", "connect.type": "int8"},
        "small": {"type": "integer", "connect.type": "int16"},
        "int": {"type": "integer", "connect.type": "int32"},
        "long": {"type": "integer", "connect.type": "int64"},
        "number": {"type": "number"},
        "float": {"type": "number", "connect.type": "float32"},
        "flag": {"type": "boolean"},
        "bytes": {"type": "string", "connect.type": "bytes"},
        "money": {
            "type": "number",
            "title": "org.apache.kafka.connect.data.Decimal",
            "connect.type": "bytes",
            "connect.parameters": {"scale": "2"},
        },
        "day": {"type": "string", "format": "date"},
        "time": {"type": "string", "format": "date-time"},
        "maybe": {"type": ["null", "string"]},
        "choice": {"oneOf": [{"type": "null"}, {"type": "integer"}]},
        "colour": {"enum": ["red", "blue", None]},
        "list": {"type": "array", "items": {"type": "number"}},
        "line": {"$ref": "#/definitions/Line"},
        "lines": {"type": "array", "items": {"anyOf": [{"$ref": "#/definitions/Line"}, {"type": "null"}]}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "zip": {"$ref": "place.json#/definitions/Zip"},
        "both": {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "integer"}}},
                {"properties": {"b": {"type": "string"}}},
            ]
        },
    },
    "required": ["text"],
    "definitions": {
        "Line": {"type": "object", "properties": {"sku": {"type": "string"}, "n": {"type": "integer", "minimum": 0}}}
    },
}
TYPES = {  # as `type_name` has them
    "text": "string",
    "whole": "long",
    "tiny": "byte",
    "small": "short",
    "int": "int",
    "long": "long",
    "number": "double",
    "float": "float",
    "flag": "boolean",
    "bytes": "binary",
    "money": "decimal(38,2)",
    "day": "date",
    "time": "timestamp",
    "maybe": "string",
    "choice": "long",
    "colour": "string",
    "list": "array<double>",
    "line": "struct<sku: string, n: long>",
    "lines": "array<struct<sku: string, n: long>>",
    "counts": "map<string,long>",
    "zip": "string",
    "both": "struct<a: long, b: string>",
}
_GOOD = {
    "string": ["", "a", "é€", '"}{"'],
    "long": [0, -(2**63), 2**63 - 1],
    "byte": [-128, 127],
    "short": [-32768],
    "int": [2**31 - 1],
    "double": [0, 1.5, -1e300],
    "float": [0.5],
    "boolean": [True, False],
    "binary": ["YQ==", ""],
    "decimal(38,2)": [1.25, 7],
    "date": ["2026-01-31"],
    "timestamp": ["2026-01-31T12:00:00Z"],
    "array<double>": [[], [1, 2.5]],
    "struct<sku: string, n: long>": [{}, {"sku": "s", "n": 1}, {"n": None, "more": [1]}],
    "array<struct<sku: string, n: long>>": [[None, {"sku": "s"}], []],
    "map<string,long>": [{}, {"a": 1, "": 2}],
    "struct<a: long, b: string>": [{"a": 1, "b": "x"}],
}
_ODD = ["x", 2**63, 1.5, [], {}, True, "2026-02-31", {"a": "x"}, [["x"]], 1e39]


def any_object(random):
    """Bytes of an object; one in five has a value that may fit no column."""
    names = random.sample(list(TYPES), random.randint(0, 6))
    found = {name: None if random.random() < 0.1 else random.choice(_GOOD[TYPES[name]]) for name in names}
    if found and random.random() < 0.2:
        found[random.choice(names)] = random.choice(_ODD)
    return json.dumps(found, ensure_ascii=random.random() < 0.5).encode()


def registered(registry, subject="t-value", schema=SCHEMA):
    """Id of a schema, with what it refers to."""
    registry.register("place", json.dumps(REFERENCED), SchemaKind.JSON)
    return registry.register(subject, json.dumps(schema), SchemaKind.JSON, [("place.json", "place", 1)])


def batch_of(values, columns, of=None, headers=None):
    return ValueBatch(pa.array(values, pa.binary()), columns, headers, of)
