"""Columns that are proposed for JSON values: they fit, and what has none is named."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.config.rule.field_types import parse_type
from kgs_core.ingest.formats.json.json_inference import MANY_FIELDS, propose_schema

TYPES = {
    "long": ["1", "-9223372036854775808"],
    "decimal(38,0)": ["1", "9223372036854775808"],
    "double": ["1", "1.5"],
    "double of exponents": ["1e3"],
    "double of no number": ["NaN"],
    "boolean": ["true", "false"],
    "string": ['"a"', '""'],
    "string beside a date": ['"2026-01-31"', '"yesterday"'],
    "date": ['"2026-01-31"', "null"],
    "timestamp": ['"2026-01-31T00:00:00+01:00"', '"2026-01-31"'],
    "string of impossible days": ['"2026-02-30"'],
    "array<long>": ["[]", "[1, null]"],
    "array<array<date>>": ['[["2026-01-31"], []]'],
    "struct<a:long,b:struct<c:double>>": ['{"a": 1}', '{"b": {"c": 1.0}}', "{}"],
    "array<struct<a:long>>": ['[{"a": 1}, {}]'],
}
NO_TYPE = {
    "null in all 2: give it a type": ["null", "null"],
    "whole numbers (2), texts (1): no type takes all": ["1", "2", '"a"'],
    "objects (1), arrays (1): no type takes all": ["{}", "[]"],
    "an empty array in all 2: write array<...>": ["[]", "[]", "null"],
    "an empty object in all 1: write map<string,...>": ["{}"],
    "whole numbers of more than 38 digits: write double": ["1" * 39],
}


def values(texts):
    return [f'{{"c": {text}}}'.encode() for text in texts]


@pytest.mark.parametrize("kind", TYPES)
def test_type_takes_all_that_was_seen(kind):
    found = propose_schema(values(TYPES[kind]))
    assert found.columns == {"c": kind.partition(" ")[0]}
    assert (found.fitting, found.bad, found.without_type) == (len(TYPES[kind]), {}, {})


@pytest.mark.parametrize("why", NO_TYPE)
def test_what_no_type_takes_is_named_and_left_out(why):
    found = propose_schema([*values(NO_TYPE[why]), b'{"d": 1}'])
    assert found.columns == {"d": "long"}
    assert found.without_type["c"].startswith(why)
    assert "\n" not in found.without_type["c"]


def test_inner_fields_without_a_type_are_named_by_their_path():
    found = propose_schema(values(['{"a": [{"x": null, "y": 1}], "z": []}']))
    assert found.columns == {"c": "struct<a:array<struct<y:long>>>"}
    assert list(found.without_type) == ["c.a[].x", "c.z"]


def test_object_of_ever_other_fields_is_a_map():
    many = values(f'{{"k{n}": {n}.5, "k{n + 1}": 1}}' for n in range(2 * MANY_FIELDS))
    assert propose_schema(many).columns == {"c": "map<string,double>"}


def test_object_of_many_fields_that_are_all_there_is_a_struct():
    wide = json.dumps({f"k{n}": n for n in range(2 * MANY_FIELDS)})
    assert propose_schema(values([wide, wide])).columns["c"].startswith("struct<k0:long,")


def test_names_that_cannot_be_columns_are_named():
    found = propose_schema([b'{"_a": 1, "": 2, "b": 3, "B": 4}'])
    assert found.columns == {"b": "long"}
    assert set(found.without_type) == {"_a", "", "B"}


def test_what_is_bad_is_counted_by_the_parser_itself():
    found = propose_schema([b'{"a": 1}', b'{"a": null}', b"{}", None, b"[]", b"{", b'{"a": 1, "a": 2}'])
    assert found.columns == {"a": "long"}
    assert (found.looked_at, found.fitting, found.absent) == (7, 3, {"a": 2})
    assert found.bad["no value (tombstone)"] == 1
    assert sum(found.bad.values()) == 4


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.dates().map(str)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3), min_size=1, max_size=5))
def test_every_object_fits_what_is_proposed_for_all(objects):
    found = propose_schema([json.dumps(each).encode() for each in objects])
    assert (found.fitting, found.bad) == (len(objects), {})
    for kind in found.columns.values():
        parse_type(kind)
