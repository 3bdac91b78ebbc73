"""Fields of Protobuf messages in columns: what each type becomes, and which values no column takes."""

import datetime as dt
import re
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kgs_core.ingest.formats.protobuf.protobuf_messages import MessageDecoder, natural_columns
from kgs_core.ingest.formats.widening import type_name
from tests.fuzz_protobuf import differences
from tests.protobuf_values import (
    EVERYTHING,
    MAX_LONG,
    Everything,
    any_message,
    comparable,
    field,
    file_of,
    message_class,
)

PAGE = Path(__file__).parents[4] / "docs/formats.md"
UTC = dt.UTC
TYPES = {  # as in docs/formats.md: field, what is set, Delta's type, what the row holds
    "`double`": ("f_double", 1.5, "double", 1.5),
    "`float`": ("f_float", 0.5, "float", 0.5),
    "`int32`, `sint32`, `sfixed32`": ("f_sint32", -(2**31), "int", -(2**31)),
    "`int64`, `sint64`, `sfixed64`": ("f_int64", MAX_LONG, "long", MAX_LONG),
    "`uint32`, `fixed32`": ("f_uint32", 2**32 - 1, "long", 2**32 - 1),
    "`uint64`, `fixed64`": ("f_fixed64", MAX_LONG, "long", MAX_LONG),
    "`bool`": ("f_bool", True, "boolean", True),
    "`string`": ("f_string", "é", "string", "é"),
    "`bytes`": ("f_bytes", b"\xff", "binary", b"\xff"),
    "enum": ("e", 1, "string", "BLUE"),
    "message": ("m", {"a": 1, "s": "b"}, "struct", {"a": 1, "s": "b", "l": [], "u": 0}),
    "`repeated T`": ("r_int32", [1, 2], "array<int>", [1, 2]),
    "`map<K, V>`": ("numbers", {1: 0.5}, "map<long,double>", [(1, 0.5)]),
    "`oneof`": ("c2", "x", "string", "x"),
    "`google.protobuf.Timestamp`": (
        "ts",
        {"seconds": 1, "nanos": 1999},
        "timestamp",
        dt.datetime(1970, 1, 1, 0, 0, 1, 1, UTC),
    ),
    "`google.protobuf.Duration`": ("du", {"seconds": -1, "nanos": -1999}, "long", -1_000_001),
    "`google.protobuf.Int64Value` and the like": ("ws", {"value": "x"}, "string", "x"),
    "`google.protobuf.Struct`, `Value`, `ListValue`": ("j", {"b": 1, "a": [None]}, "string", '{"a":[null],"b":1.0}'),
}


def decoded(file, name, messages, columns=None):
    descriptor = message_class(file, name).DESCRIPTOR
    return MessageDecoder(descriptor, natural_columns(descriptor) if columns is None else columns).decode(messages)


@pytest.mark.parametrize("name", TYPES)
def test_every_type_becomes_the_column_that_the_documentation_says(name):
    of, given_value, kind, row = TYPES[name]
    found = decoded(EVERYTHING, "p.Everything", [Everything(**{of: given_value}).SerializeToString(), b""])
    assert found.bad == {}
    assert found.table[of][0].as_py() == row
    assert type_name(found.table.schema.field(of).type).split("<" if kind == "struct" else "\0")[0] == kind
    assert all(each.nullable for each in found.table.schema)


def test_table_of_types_in_the_documentation_is_this_one():
    part = PAGE.read_text().split("## Protobuf")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| (.*?) \| .*? \| `(.*?)` \|", part, re.MULTILINE))
    assert list(rows) == list(TYPES)
    for name, (_, _, kind, _) in TYPES.items():
        assert name in ("message", "`repeated T`", "`map<K, V>`", "`oneof`") or rows[name] == kind


def test_fields_that_are_not_set_are_null_where_presence_is_known_else_their_default():
    row = decoded(EVERYTHING, "p.Everything", [b""]).table.to_pylist()[0]
    nulls = {"m", "c1", "c2", "c3", "o", "ts", "du", "w", "ws", "j"}
    assert {name for name, value in row.items() if value is None} == nulls
    assert (row["f_int32"], row["f_string"], row["e"], row["rm"], row["tags"]) == (0, "", "RED", [], [])


def test_one_of_several_is_set_the_last_one():
    value = Everything(c1=5).SerializeToString() + Everything(c2="x").SerializeToString()
    row = decoded(EVERYTHING, "p.Everything", [value]).table.to_pylist()[0]
    assert (row["c1"], row["c2"], row["c3"]) == (None, "x", None)


def test_unknown_number_of_an_enum_is_its_digits_and_the_first_name_counts():
    values = [Everything(e=7, re=[1, -1]).SerializeToString()]
    row = decoded(EVERYTHING, "p.Everything", values).table.to_pylist()[0]
    assert (row["e"], row["re"]) == ("7", ["BLUE", "-1"])


def test_neither_the_order_of_a_schema_nor_that_of_the_table_changes_which_value_a_column_has():
    """A field may stand before one with a lower number, as one added in the middle does; a table knows no numbers."""
    other = FileDescriptorProto()
    other.CopyFrom(EVERYTHING)
    top = other.message_type[0]
    for each in (top, top.nested_type[0]):  # an entry of a map has its key in front
        each.field.reverse()
    values = [any_message(Random(seed)) for seed in range(200)]
    found, expected = decoded(other, "p.Everything", values), decoded(EVERYTHING, "p.Everything", values)
    assert found.table.schema.names == expected.table.schema.names[::-1]
    assert list(found.good) == list(expected.good)
    rows = [comparable(row) for row in expected.table.to_pylist()]
    assert [comparable(row) for row in found.table.to_pylist()] == rows
    columns = pa.schema(Random(1).sample(list(expected.table.schema), 30))
    chosen = decoded(other, "p.Everything", [values[i] for i in expected.good], columns).table.to_pylist()
    assert [comparable(row) for row in chosen] == [{name: row[name] for name in columns.names} for row in rows]


@pytest.mark.parametrize(
    ("message", "where"),
    [
        ({"f_uint64": 2**63}, "field f_uint64: a number above"),
        ({"m": {"u": 2**63}}, "field m.u: a number above"),
        ({"rm": [{}, {"u": 2**63}]}, r"field rm\[\].u: a number above"),
        ({"tags": {"a": {"u": 2**63}}}, r"field tags\{value\}.u: a number above"),
        ({"numbers": {2**63: 1}}, r"field numbers\{key\}: a number above"),
        ({"w": {"value": 2**63}}, "field w: a number above"),
        ({"ts": {"seconds": 253402300800}}, "field ts: no instant"),
        ({"ts": {"nanos": -1}}, "field ts: no instant"),
        ({"ts": {"seconds": -(2**63)}}, "field ts: no instant"),
        ({"du": {"seconds": 1, "nanos": -1}}, "field du: no span"),
        ({"j": {"a": float("nan")}}, "field j: holds what JSON cannot say"),
    ],
)
def test_value_that_no_column_takes_is_bad_in_words_and_leaves_its_neighbours_alone(message, where):
    value, good = Everything(**message).SerializeToString(), Everything(f_int32=5).SerializeToString()
    found = decoded(EVERYTHING, "p.Everything", [good, value, good])
    assert list(found.good) == [0, 2]
    assert re.match(where, found.bad[1])
    assert found.table["f_int32"].to_pylist() == [5, 5]


def test_text_of_proto2_that_is_not_utf8_is_bad():
    file = file_of(f'message_type {{ name: "Old" {field("s", 1, "STRING")} }}', syntax="proto2")
    found = decoded(file, "p.Old", [b"\n\1a", b"\n\1\xff", b""])
    assert found.table.to_pylist() == [{"s": "a"}, {"s": None}]
    assert found.bad == {1: "field s: a text that is not UTF-8"}


def test_broken_messages_are_judged_as_googles_library_judges_each_alone():
    wrong, tally = differences(3000, seed=20261124)
    assert wrong == []
    assert min(tally["good"], tally["bad"]) > 500
