"""Values to columns: what is a bad record, and that no record changes what becomes of another."""

import datetime as dt
import json
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.ingest.formats.parsed import MAX_REASON
from kgs_core.lake.files.row_schema import VALUE_TYPES
from tests.topic_jobs import parse_json

SCHEMA = pa.schema(list(VALUE_TYPES.items()))
NOTHING = dict.fromkeys(SCHEMA.names)
DEEP = 100_000
WIDE = 100_000

GOOD = {
    "plain": (b'{"long": 1, "string": "a"}', {"long": 1, "string": "a"}),
    "no fields": (b"{}", {}),
    "null": (b'{"long": null, "string": null}', {}),
    "unknown field": (b'{"other": {"deep": [1, {"x": 2}]}, "long": 1}', {"long": 1}),
    "blanks around": (b' \t\r\n{"long": 1} \n', {"long": 1}),
    "pretty-printed": (b'{\n  "long": 1,\r\n  "string": "a"\n}\n', {"long": 1, "string": "a"}),
    "escapes": (b'{"string": "\\u00e9\\n\\"}{\\" \\ud83d\\ude00"}', {"string": 'é\n"}{" \N{GRINNING FACE}'}),
    "escaped NUL": (b'{"string": "a\\u0000b"}', {"string": "a\0b"}),
    "UTF-8": ('{"string": "é€"}'.encode(), {"string": "é€"}),
    "largest long": (b'{"long": 9223372036854775807}', {"long": 2**63 - 1}),
    "double": (b'{"double": 1.5e10, "float": 0.5}', {"double": 1.5e10, "float": 0.5}),
    "whole number as double": (b'{"double": 3}', {"double": 3.0}),
    "date": (b'{"date": "2026-01-31"}', {"date": dt.date(2026, 1, 31)}),
    "instant": (
        b'{"timestamp": "2026-01-31T12:00:00.123456+02:00"}',
        {"timestamp": dt.datetime(2026, 1, 31, 10, 0, 0, 123456, tzinfo=dt.UTC)},
    ),
    "instant without offset is UTC": (
        b'{"timestamp": "2026-01-31 12:00:00"}',
        {"timestamp": dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)},
    ),
    "nested deep in an unknown field": (b'{"x": ' + b"[" * DEEP + b"]" * DEEP + b"}", {}),
    "objects nested deep": (b'{"x": ' * DEEP + b"1" + b"}" * DEEP, {}),
    "many unknown keys": (b'{"long": 1, ' + b",".join(b'"k%d": 0' % n for n in range(WIDE)) + b"}", {"long": 1}),
}
BAD = {  # and what of a value a column does not take: test_json_faults.FEW
    "tombstone": None,
    "empty": b"",
    "blanks": b" \r\n\t ",
    "not JSON": b"hello",
    "null": b"null",
    "true": b"true",
    "number": b"1",
    "text": b'"{}"',
    "array": b"[{}]",
    "two objects": b"{}{}",
    "two objects on two lines": b'{"long": 1}\n{"long": 2}',
    "unfinished": b'{"long": 1',
    "unfinished, ends like an object": b'{"x": {"long": 1}',
    "unfinished text, ends like an object": b'{"string": "}',
    "unfinished array": b'{"x": [{}',
    "too many braces": b'{"long": 1}}',
    "comma at the end": b'{"long": 1,}',
    "single quotes": b"{'long': 1}",
    "no colon": b'{"long" 1}',
    "line break in text": b'{"string": "a\nb"}',
    "NUL": b'{"long": 1}\0}',
    "NUL after two objects": b'{"long": 1}{"long": 2}\0}',
    "byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"long": 1}'.encode("utf-16"),
    "number for a text": b'{"string": 1}',
    "object for a number": b'{"long": {}}',
    "array for a text": b'{"string": ["a"]}',
    "long overflow": b'{"long": 9223372036854775808}',
    "number of days": b'{"date": 5}',
    "number for an instant": b'{"timestamp": 1700000000}',
    "array nested deep": b'{"long": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "nested deep and unfinished": b'{"x": ' * DEEP + b"}",
}


def rows_of(parsed):
    return parsed.table.to_pylist()


@pytest.mark.parametrize("name", GOOD)
def test_good_value_becomes_a_row(name):
    value, fields = GOOD[name]
    parsed = parse_json([value], SCHEMA)
    assert (rows_of(parsed), list(parsed.good), parsed.bad) == ([NOTHING | fields], [0], {})
    assert parsed.table.schema == SCHEMA


@pytest.mark.parametrize("name", BAD)
def test_bad_value_is_set_aside_with_a_reason_and_leaves_its_neighbours_alone(name):
    alone = parse_json([BAD[name]], SCHEMA)
    assert alone.table.num_rows == 0
    assert alone.bad[0]
    assert len(alone.bad[0]) <= MAX_REASON
    assert "\n" not in alone.bad[0]
    neighbour = b'{"long": 7}'
    parsed = parse_json([neighbour, BAD[name], neighbour, BAD[name], BAD[name], neighbour], SCHEMA)
    assert rows_of(parsed) == [NOTHING | {"long": 7}] * 3
    assert list(parsed.good) == [0, 2, 5]
    assert parsed.bad == dict.fromkeys([1, 3, 4], alone.bad[0])


def test_nothing_gives_an_empty_table():
    assert parse_json([], SCHEMA).table == SCHEMA.empty_table()
    assert parse_json([b"bad"], SCHEMA).table == SCHEMA.empty_table()


def test_numbers_that_only_some_call_json_are_kept_where_they_fit():
    parsed = parse_json([b'{"double": NaN}', b'{"double": -Infinity}', b'{"float": Infinity}'], SCHEMA)
    found = [(row["double"], row["float"]) for row in rows_of(parsed)]
    assert math.isnan(found[0][0])
    assert found[1:] == [(-math.inf, None), (None, math.inf)]


FIELDS = {
    "string": st.text() | st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
}
OBJECTS = st.fixed_dictionaries({}, optional=FIELDS)


@given(st.lists(OBJECTS))
def test_what_was_written_is_read(objects):
    parsed = parse_json([json.dumps(o).encode() for o in objects if not _has_surrogate(o)], SCHEMA)
    expected = [NOTHING | o for o in objects if not _has_surrogate(o)]
    assert rows_of(parsed) == expected
    assert parsed.bad == {}


def _has_surrogate(row):
    return any(0xD800 <= ord(c) < 0xE000 for c in row.get("string") or "")
