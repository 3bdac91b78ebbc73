"""Schemas that nobody would write, beside one record that is good: only records of theirs are bad, at once."""

import json

import pyarrow as pa
import pytest

from kgs_core.config.registry import RegistrySettings
from kgs_core.ingest.formats import by_schema
from kgs_core.ingest.formats.avro.avro import parse_avro
from kgs_core.ingest.formats.json.json_schema import parse_json_schema
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.ports.registry import SchemaKind

GOOD = {"type": "record", "name": "Good", "fields": [{"name": "id", "type": "int"}]}


def record(name, *fields):
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def laughs(levels):
    """Every level names the one below it twice: twice as many types each time."""
    found = record(f"r{levels}", ("n", "int"))
    for level in reversed(range(levels)):
        found = record(f"r{level}", ("a", found), ("b", f"r{level + 1}"))
    return found


ODD_AVRO = {
    "a field twice": record("R", ("id", "int"), ("id", "string")),
    "more types than there is room for": laughs(20),
    "a fixed of 2**63 bytes": record("R", ("id", {"type": "fixed", "name": "F", "size": 2**63})),
    "a fixed of a text": record("R", ("id", {"type": "fixed", "name": "F", "size": "a"})),
    "a fixed of less than nothing": record("R", ("id", {"type": "fixed", "name": "F", "size": -1})),
    "a circle in itself": record("R", ("id", ["null", "R"])),
    "nothing that is known": record("R", ("id", {"type": "whatever"})),
}
ODD_JSON = {
    "oneOf null": {"type": "object", "properties": {"id": {"oneOf": None}}},
    "allOf null": {"type": "object", "allOf": None},
    "enum 5": {"type": "object", "properties": {"id": {"enum": 5}}},
    "a list of patterns": {"type": "object", "patternProperties": [1]},
    "an id that is no address": {"type": "object", "$id": "http://[x", "properties": {"id": {"$ref": "x"}}},
    "an id that is a number": {"type": "object", "$id": 5, "properties": {"id": {"$ref": "x"}}},
}


def frame(number, body):
    return b"\0" + number.to_bytes(4, "big") + body


def parse(parser, registry, values, columns):
    of = RegistrySettings(url=registry.url)
    return parser(ValueBatch(pa.array(values, pa.binary()), columns, None, of))


@pytest.mark.parametrize("kind", ODD_AVRO)
def test_odd_avro_harms_no_neighbour(registry, kind):
    good, odd = (registry.register("t-value", json.dumps(each)) for each in (GOOD, ODD_AVRO[kind]))
    values = [frame(good, b"\2"), frame(odd, b"\2\2"), frame(good, b"\4")]
    found = parse(parse_avro, registry, values, pa.schema({"id": pa.int32()}))
    assert (found.table.to_pylist(), list(found.bad)) == ([{"id": 1}, {"id": 2}], [1])


@pytest.mark.parametrize("kind", ODD_JSON)
def test_an_odd_json_schema_harms_no_value(registry, kind):
    """Values are judged by their columns, so only whether there are more of these is not known."""
    good = registry.register("t-value", json.dumps({"type": "object", "properties": {"id": {}}}), SchemaKind.JSON)
    odd = registry.register("t-value", json.dumps(ODD_JSON[kind]), SchemaKind.JSON)
    values = [frame(good, b'{"id": 1}'), frame(odd, b'{"id": 2}'), frame(good, b"{")]
    found = parse(parse_json_schema, registry, values, pa.schema({"id": pa.int32()}))
    assert (found.table.to_pylist(), list(found.bad), found.missing) == ([{"id": 1}, {"id": 2}], [2], pa.schema([]))


@pytest.mark.parametrize("shape", ["a chain", "a diamond", "both named"])
def test_references_of_references_are_read(registry, shape):
    inner = record("D", ("x", "int"))
    registry.register("d", json.dumps(inner))
    for name in ("B", "C"):
        registry.register(name, json.dumps(record(name, ("d", "D"))), references=[("D", "d", 1)])
    to_b, to_c, to_d = ("B", "B", 1), ("C", "C", 1), ("D", "d", 1)
    fields, references = {
        "a chain": ([("b", "B")], [to_b]),
        "a diamond": ([("b", "B"), ("c", "C")], [to_b, to_c]),
        "both named": ([("b", "B"), ("d", "D")], [to_d, to_b]),
    }[shape]
    number = registry.register("t-value", json.dumps(record("A", *fields)), references=references)
    columns = pa.schema({"b": pa.struct({"d": pa.struct({"x": pa.int32()})})})
    found = parse(parse_avro, registry, [frame(number, b"\2" * len(fields))], columns)
    assert (found.table.to_pylist(), found.bad) == ([{"b": {"d": {"x": 1}}}], {})


def test_a_batch_of_many_unknown_schemas_ends_in_time_and_the_next_one_goes_on(registry, monkeypatch):
    monkeypatch.setattr(by_schema, "ASKING_S", 0.0)
    good = registry.register("t-value", json.dumps({**GOOD, "name": "AskedForHereFirst"}))
    values = [frame(900 + n, b"") for n in range(5)] + [frame(good, b"\2")]
    judged = 0
    while judged < len(values):
        found = parse(parse_avro, registry, values[judged:], pa.schema({"id": pa.int32()}))
        first = min(found.waiting, default=len(values) - judged)
        assert first > 0, "each batch judges one record at least"
        assert all(i in found.bad for i in range(first)) or found.good
        judged += first
    assert found.table.to_pylist() == [{"id": 1}]
