"""Columns of a writer's schema in those of a table."""

import decimal

import pyarrow as pa
import pytest

from kgs_core.ingest.formats.avro.avro_columns import PROMOTIONS
from kgs_core.ingest.formats.widening import widened, widening_problem

LINE = pa.struct([("n", pa.int32()), ("s", pa.string())])
WIDE_LINE = pa.struct([("s", pa.string()), ("n", pa.int64()), ("new", pa.bool_())])
FITS = [
    (pa.int32(), pa.int64(), [1, None], [1, None]),
    (pa.int32(), pa.float64(), [-(2**31)], [-(2.0**31)]),
    (pa.float32(), pa.float64(), [0.5], [0.5]),
    (pa.int64(), pa.decimal128(20, 1), [2**63 - 1], [decimal.Decimal(2**63 - 1)]),
    (pa.decimal128(4, 2), pa.decimal128(6, 3), [decimal.Decimal("1.25")], [decimal.Decimal("1.250")]),
    (LINE, WIDE_LINE, [{"n": 1, "s": "a"}, None], [{"s": "a", "n": 1, "new": None}, None]),
    (
        pa.list_(LINE),
        pa.list_(WIDE_LINE),
        [[], None, [{"n": 1, "s": None}]],
        [[], None, [{"s": None, "n": 1, "new": None}]],
    ),
    (
        pa.map_(pa.string(), pa.int32()),
        pa.map_(pa.string(), pa.int64()),
        [[("a", 1)], None, []],
        [[("a", 1)], None, []],
    ),
]
MISFITS = [
    (pa.int64(), pa.int32(), "column c: long in the writer's schema, int in the table"),
    (pa.int64(), pa.float64(), "column c: long in the writer's schema, double in the table"),
    (pa.string(), pa.int64(), "column c: string in the writer's schema, long in the table"),
    (pa.int32(), pa.decimal128(10, 1), "column c: int in the writer's schema, decimal(10,1) in the table"),
    (pa.list_(LINE), pa.list_(pa.struct([("n", pa.string())])), "column c[].n: int in"),
    (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int32()), "column c{value}: long in"),
    (pa.timestamp("us", tz="UTC"), pa.date32(), "column c: timestamp in the writer's schema, date in the table"),
    (LINE, pa.list_(LINE), "column c: struct<n: int, s: string> in the writer's schema, array<struct<"),
]


@pytest.mark.parametrize(("found", "wanted", "values", "out"), FITS)
def test_values_become_wider_and_parts_are_found_by_name(found, wanted, values, out):
    assert widening_problem(found, wanted, "c") == ""
    column = pa.array([*values, *values], found)
    for each in (column.slice(0, len(values)), column.slice(len(values))):
        made = widened(each, wanted)
        made.validate(full=True)
        assert made.type == wanted
        assert made.to_pylist() == out


def test_what_a_format_itself_promotes_passes_at_any_depth_and_may_round():
    found, wanted = pa.list_(pa.int64()), pa.list_(pa.float64())
    assert widening_problem(found, wanted, "c").startswith("column c[]: long in")
    assert widening_problem(found, wanted, "c", PROMOTIONS) == ""
    assert widened(pa.array([[2**53 + 1, None]], found), wanted).to_pylist() == [[2.0**53, None]]


@pytest.mark.parametrize(("found", "wanted", "words"), MISFITS)
def test_types_that_do_not_hold_all_values_are_refused_in_words(found, wanted, words):
    assert widening_problem(found, wanted, "c").startswith(words)
