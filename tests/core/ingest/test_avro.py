"""Avro values: the type of each column, what is bad and why, and a registry that does not answer."""

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pyarrow as pa
import pytest

from kgs_core.errors import ConfigError
from kgs_core.ingest.formats.avro.avro import avro_columns_of, parse_avro
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.lake.files.row_schema import column_types
from tests.core.ingest.avro_values import binary, encoded, record
from tests.fuzz_decoders import main

PAGE = Path(__file__).parents[3] / "docs/formats.md"
UTC_MICROS = pa.timestamp("us", tz="UTC")
LATE = datetime(2026, 1, 31, 12, tzinfo=UTC)
LATE_MS = 1769860800000


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


def parse(schema, values, columns=None):
    rule = SimpleNamespace(avro_schema=json.dumps(schema))
    return parse_avro(
        ValueBatch(binary(values), columns or avro_columns_of("t", rule, None), avro_schema=rule.avro_schema)
    )


NODE = {"type": "record", "name": "node", "fields": [{"name": "next", "type": ["null", "node"]}]}
FIXED = {"type": "fixed", "name": "x", "size": 16}
ENUM = {"type": "enum", "name": "e", "symbols": ["A", "B"]}
TYPES = [
    ("boolean", pa.bool_(), True, True),
    ("int", pa.int32(), -7, -7),
    ("long", pa.int64(), 2**62, 2**62),
    ("float", pa.float32(), 1.5, 1.5),
    ("double", pa.float64(), 1.1, 1.1),
    ("string", pa.string(), "\u20ac", "\u20ac"),
    ("bytes", pa.binary(), b"\xff", b"\xff"),
    (FIXED, pa.binary(), bytes(16), bytes(16)),
    (ENUM, pa.string(), "B", "B"),
    (logical("int", "date"), pa.date32(), 20484, date(2026, 1, 31)),
    (logical("int", "time-millis"), pa.int32(), 1, 1),
    (logical("long", "time-micros"), pa.int64(), 1, 1),
    (logical("long", "timestamp-millis"), UTC_MICROS, LATE_MS, LATE),
    (logical("long", "timestamp-micros"), UTC_MICROS, LATE_MS * 1000, LATE),
    (logical("long", "timestamp-nanos"), UTC_MICROS, LATE_MS * 1_000_000 + 999, LATE),
    (logical("long", "local-timestamp-micros"), pa.int64(), 5, 5),
    (logical("bytes", "decimal", precision=9, scale=2), pa.decimal128(9, 2), b"\xff\x85", Decimal("-1.23")),
    ({**FIXED, **logical("fixed", "decimal", precision=38)}, pa.decimal128(38, 0), b"\0" * 15 + b"\7", Decimal(7)),
    (logical("bytes", "decimal", precision=39), pa.binary(), b"\1", b"\1"),
    (logical("string", "uuid"), pa.string(), str(UUID(int=1)), str(UUID(int=1))),
    ({**FIXED, **logical("fixed", "uuid")}, pa.binary(), bytes(16), bytes(16)),
    ({"type": "array", "items": "long"}, pa.list_(pa.int64()), [1, 2], [1, 2]),
    ({"type": "map", "values": ["null", "int"]}, pa.map_(pa.string(), pa.int32()), {"k": None}, [("k", None)]),
    (record("int", "string", name="n"), pa.struct({"f0": pa.int32(), "f1": pa.string()}), {"f0": 1, "f1": ""}, None),
    (["null", ENUM], pa.string(), None, None),
    (["string", "null"], pa.string(), "x", "x"),
]


@pytest.mark.parametrize(("kind", "arrow", "written", "wanted"), TYPES)
def test_type_of_each_column(kind, arrow, written, wanted):
    schema = record(kind)
    found = parse(schema, [encoded(schema, {"f0": written})])
    assert found.table.schema == pa.schema([pa.field("f0", arrow)])
    assert found.table["f0"].to_pylist() == [written if wanted is None else wanted]


def test_page_of_formats_has_each_type_as_it_is():
    part = PAGE.read_text().split("## Avro")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(.*)` \| `(.*)` \| `(.*)` \|$", part, re.MULTILINE)
    types = [(json.dumps(kind), str(arrow), column_types(pa.schema({"f": arrow}))["f"]) for kind, arrow, *_ in TYPES]
    assert rows == types


CASES = {"type": "record", "name": "cases", "fields": [{"name": n, "type": "int"} for n in "aA"]}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (record(["int", "string"]), "field f0: a union of 2 types"),
        (record(["null", "int", "string"]), "a union of 3 types"),
        (record(NODE), "field f0.next: it refers to node"),
        ("string", "no record"),
        (record(), "no field"),
        (record({"type": "array", "items": {"type": "fixed", "name": "z", "size": 0}}), "take no byte"),
        (record("nonsense"), "no Avro schema"),
        ({"type": "record", "name": "r", "fields": [{"name": "_x", "type": "int"}]}, "columns that kgs adds"),
        (CASES, "only in case"),
        (record({"type": "array", "items": CASES}), "only in case"),
    ],
)
def test_schema_that_no_columns_can_be_made_of_is_refused_in_words(schema, words):
    with pytest.raises(ConfigError, match=words):
        parse(schema, [])


def test_null_and_empty_records_are_no_columns_and_named_types_are_used_again():
    named = record("int", name="again")
    schema = record("null", named, "again", record(name="empty"), ["null", "again"])
    assert parse(schema, [b"\2\4\2\6"]).table.to_pylist() == [{"f1": {"f0": 1}, "f2": {"f0": 2}, "f4": {"f0": 3}}]


BAD = [
    ("string", b"", "field f0: ends too early"),
    ("string", b"\4a", "field f0: ends too early"),
    ("string", b"\4\xff\xfe", "field f0: a string that is not UTF-8"),
    ("string", b"\1", "field f0: a length below zero"),
    ("long", b"\2\0", "value goes on behind its end"),
    ("long", b"\xff" * 9 + b"\2", "field f0: a number of more than 64 bits"),
    ("int", b"\x80\x80\x80\x80\x10", "field f0: a number out of range"),
    ("boolean", b"\2", "field f0: a boolean that is neither 0 nor 1"),
    (ENUM, b"\4", "field f0: a number out of range"),
    (["null", "int"], b"\4", "field f0: a branch that its union does not have"),
    (logical("long", "timestamp-millis"), b"\xfe" + b"\xff" * 8 + b"\1", "field f0: a number out of range"),
    (logical("bytes", "decimal", precision=2), b"\2\x64", "field f0: a decimal with more digits than its precision"),
    ({"type": "array", "items": "int"}, b"\x80\x80\x80\x80\x80\x20", "field f0: ends too early"),
    (record("int", name="n"), b"\x80", "field f0.f0: ends too early"),
]


@pytest.mark.parametrize(("kind", "value", "words"), BAD)
def test_bad_value_is_told_by_field_and_harms_no_neighbour(kind, value, words):
    schema = record(["null", kind] if isinstance(kind, str | dict) else kind)
    value = b"\2" + value if isinstance(kind, str | dict) else value
    parsed = parse(schema, [b"\0", value, b"\0"])
    assert (parsed.good, parsed.bad) == ([0, 2], {1: words})
    assert parsed.table["f0"].to_pylist() == [None, None]


def test_fields_go_to_columns_by_name_and_widen():
    schema = record("int", "float", "string", logical("bytes", "decimal", precision=3, scale=1))
    wide = {"f3": pa.decimal128(10, 2), "f1": pa.float64(), "other": pa.date32(), "f0": pa.int64()}
    datum = {"f0": 1, "f1": 0.5, "f2": "left out", "f3": b"\7"}
    found = parse(schema, [encoded(schema, datum)], pa.schema(wide))
    assert found.table.to_pylist() == [{"f3": Decimal("0.70"), "f1": 0.5, "other": None, "f0": 1}]
    assert found.missing == pa.schema({"f2": pa.string()})


def test_a_field_that_a_struct_or_a_list_of_structs_lacks_is_missing_within_it():
    inner = {"type": "record", "name": "Inner", "fields": [{"name": n, "type": "int"} for n in ("old", "new")]}
    schema = record(inner, {"type": "array", "items": "Inner"})
    there = pa.struct({"old": pa.int32()})
    found = parse(schema, [b"\2\4\0"], pa.schema({"f0": there, "f1": pa.list_(there)}))
    assert found.table.to_pylist() == [{"f0": {"old": 1}, "f1": []}]
    new = pa.struct({"new": pa.int32()})
    assert found.missing == pa.schema({"f0": new, "f1": pa.list_(new)})
    whole = parse(schema, [b"\2\4\0"]).table
    assert parse(schema, [b"\2\4\0"], whole.schema).missing == pa.schema({})


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("long", pa.int32()),
        ("string", pa.int64()),
        ("double", pa.float32()),
        ("long", UTC_MICROS),
        ("bytes", pa.string()),
    ],
)
def test_field_that_does_not_fit_its_column_makes_all_of_its_schema_bad(kind, column):
    schema = record(kind)
    datum = {"f0": {"string": "", "bytes": b""}.get(kind, 1)}
    found = parse(schema, [encoded(schema, datum)], pa.schema({"f0": column}))
    assert re.match(r"schema 0: column f0: \w+ in the writer's schema, \w+ in the table: ", found.bad[0])
    assert "change the column in the rule, or the producer" in found.bad[0]


def test_broken_values_are_refused_each_by_itself():
    main(3000, 7)
