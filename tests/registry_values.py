"""Values of every format as topics have them: good ones, bad ones, and those of several schemas of a registry."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from bench.registry_stub import StubRegistry
from kgs_core.ports.registry import SchemaKind
from tests.core.ingest.avro_values import encoded, random_datum, record
from tests.json_schema_values import any_object
from tests.json_schema_values import registered as registered_json_schema
from tests.protobuf_values import EVERYTHING, any_message, broken, file_of, message_class, registered_text
from tests.protobuf_values import field as proto_field

UNKNOWN_ID = 9_999
"""Of a schema that no registry here has."""
_UNFRAMED = (None, b"", b"\0", b"\0\0\0\0", b"\1\0\0\0\1", b"{}", b"\7\0\0\0\1x", b"\0\xff\xff\xff\xff")
_TEXTS = ("", "a", "é€", "\U0001f600", "x" * 300)
_LINE = {**record("string", ["null", "long"], {"type": "map", "values": "double"}, name="line")}
AVRO_OLD = record("int", ["null", "string"], {"type": "array", "items": _LINE})
AVRO_NEW = record(
    "long",
    ["null", "string"],
    {"type": "array", "items": _LINE},
    {"type": "map", "values": ["null", "line"]},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    ["null", {"type": "long", "logicalType": "timestamp-micros"}],
)
ORDER = file_of(
    f'message_type {{ name: "Everything" {proto_field("f_int64", 3, "INT64")} {proto_field("f_string", 9, "STRING")}'
    f" {proto_field('more', 99, 'STRING', 'LABEL_REPEATED')} }}",
    name="other.proto",
)
"""A second schema: some fields of `EVERYTHING`, and one that it lacks."""
_Order = message_class(ORDER, "p.Everything")
JSON_COLUMNS = {
    "id": "long",
    "when": "timestamp",
    "place": "struct<city: string, at: array<double>>",
    "lines": "array<struct<sku: string, price: decimal(9,2)>>",
    "tags": "map<string,struct<n: int>>",
}
_JSON_GOOD: Mapping[str, tuple[Any, ...]] = {
    "id": (0, -(2**63), None),
    "when": ("2026-01-31T12:00:00Z", None),
    "place": ({}, {"city": "é", "at": [1, 2.5, None]}, {"x": 1}, None),
    "lines": ([], [None, {"sku": "s", "price": 1.25}], [{"more": {"a": 1}}]),
    "tags": ({}, {"a": {"n": 1}, "": None}, {"b": {"m": 1}}),
    "unknown": (1, {"deep": [1, "2"]}),
}
_JSON_ODD = ("x", 2**63, 1.5, [], {}, True, "2026-02-31", {"a": "x"}, 1e300)


@dataclass(frozen=True)
class ValuesOfFormat:
    """What a topic of one format may hold.

    Attributes:
        rule: what its rule has besides the topic's name.
        value: bytes of a value, by a source of chance and the ids that `register` gave.
        register: puts schemas into a registry and gives their ids.
        left_out: columns of the newest schema that the table has not.
    """

    rule: Mapping[str, Any]
    value: Callable[[Random, tuple[int, ...]], bytes | None]
    register: Callable[[StubRegistry], tuple[int, ...]] = field(default=lambda _: ())
    left_out: tuple[str, ...] = ()


def _raw(chance: Random, _: tuple[int, ...]) -> bytes | None:
    return chance.choice([None, b"", chance.randbytes(3), b"\xff" * 40])


def _text(chance: Random, _: tuple[int, ...]) -> bytes | None:
    return chance.choice([None, b"\xff", b"a\xc3", *(text.encode() for text in _TEXTS)])


def _json(chance: Random, _: tuple[int, ...]) -> bytes | None:
    names = chance.sample(list(_JSON_GOOD), chance.randint(0, 5))
    found = {name: chance.choice(_JSON_GOOD[name]) for name in names}
    if names and chance.random() < 0.3:
        found[chance.choice(names)] = chance.choice(_JSON_ODD)
    value = json.dumps(found, ensure_ascii=chance.random() < 0.5).encode()
    return chance.choice([None, b"", b"[]", broken(chance, value, value)]) if chance.random() < 0.2 else value


def _framed(chance: Random, ids: tuple[int, ...], make: Callable[[int], bytes], indexes: bytes = b"") -> bytes | None:
    """A value behind its frame; one in four has something wrong: frame, schema or payload."""
    at = chance.randrange(2)
    body, way = make(at), chance.randrange(16)
    if way == 0:
        return chance.choice(_UNFRAMED)
    if way == 1:
        body = broken(chance, body, make(at))
    number = {2: UNKNOWN_ID, 3: ids[-1]}.get(way, ids[at])
    return b"\0" + number.to_bytes(4, "big") + indexes + body


def _avro(chance: Random, ids: tuple[int, ...]) -> bytes | None:
    schemas = (AVRO_OLD, AVRO_NEW)
    return _framed(chance, ids, lambda at: encoded(schemas[at], _datum(chance, schemas[at])))


def _datum(chance: Random, schema: dict[str, Any]) -> Any:
    """A value of the schema, whose map names a type by its name."""
    named = json.loads(json.dumps(schema).replace('["null", "line"]', json.dumps(["null", _LINE])))
    return random_datum(chance, named)


def _avro_schemas(registry: StubRegistry) -> tuple[int, ...]:
    other = registry.register("other", '{"type": "object"}', SchemaKind.JSON)
    return (*(registry.register("t-value", json.dumps(each)) for each in (AVRO_OLD, AVRO_NEW)), other)


def _protobuf(chance: Random, ids: tuple[int, ...]) -> bytes | None:
    def make(at: int) -> bytes:
        if at:
            return any_message(chance)
        message = _Order(f_int64=chance.choice([0, -1, 2**62]), f_string=chance.choice(_TEXTS))
        message.more.extend(_TEXTS[: chance.randint(0, 3)])
        return message.SerializeToString()

    return _framed(chance, ids, make, b"\0")


def _protobuf_schemas(registry: StubRegistry) -> tuple[int, ...]:
    other = registry.register("other", json.dumps(AVRO_OLD))
    both = (registry.register("t-value", registered_text(each), SchemaKind.PROTOBUF) for each in (ORDER, EVERYTHING))
    return (*both, other)


def _json_schema(chance: Random, ids: tuple[int, ...]) -> bytes | None:
    return _framed(chance, ids, lambda _: any_object(chance))


def _json_schemas(registry: StubRegistry) -> tuple[int, ...]:
    other = registry.register("other", json.dumps(AVRO_OLD))
    plain = {"type": "object", "properties": {"text": {"type": "string"}, "more": {"type": "integer"}}}
    return (registry.register("t-value", json.dumps(plain), SchemaKind.JSON), registered_json_schema(registry), other)


VALUES = {
    "raw": ValuesOfFormat({"format": "raw"}, _raw),
    "string": ValuesOfFormat({"format": "string"}, _text),
    "json": ValuesOfFormat({"format": "json", "schema": JSON_COLUMNS}, _json),
    "avro": ValuesOfFormat({"format": "avro"}, _avro, _avro_schemas, ("f1",)),
    "protobuf": ValuesOfFormat({"format": "protobuf"}, _protobuf, _protobuf_schemas, ("f_bool", "m", "tags", "c1")),
    "json_schema": ValuesOfFormat({"format": "json_schema"}, _json_schema, _json_schemas, ("whole", "lines", "both")),
}
"""Name of a format -> what a topic of it may hold."""
