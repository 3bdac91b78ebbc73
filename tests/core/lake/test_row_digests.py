"""Digests of rows: as equal as the rows, in whatever kind of column the values are."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.lake.files.row_digests import row_digests

TEXTS = st.text(max_size=4)
ROWS = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-3, 3),
        "f": st.none() | st.sampled_from([0.5, 1.0, -1.0, float("inf")]),
        "s": st.none() | TEXTS,
        "b": st.none() | st.binary(max_size=3),
        "yes": st.none() | st.booleans(),
        "at": st.none() | st.sampled_from([dt.datetime(1969, 1, 1), dt.datetime(2026, 1, 1, 1, 2, 3, 4)]),  # noqa: DTZ001
        "d": st.none() | st.dates(min_value=dt.date(1969, 1, 1), max_value=dt.date(1971, 1, 1)),
        "m": st.none() | st.decimals(-9, 9, places=2),
        "list": st.none() | st.lists(TEXTS, max_size=2),
        "struct": st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(0, 3)}),
    }
)
SCHEMA = pa.schema(
    [
        ("n", pa.int64()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.binary()), ("yes", pa.bool_()),
        ("at", pa.timestamp("us")), ("d", pa.date32()), ("m", pa.decimal128(10, 2)),
        ("list", pa.list_(pa.string())), ("struct", pa.struct([("x", pa.int64())])),
    ]
)  # fmt: skip


def key(row):
    return repr(sorted(row.items()))


@given(st.lists(ROWS, max_size=8))
def test_rows_are_equal_as_their_digests_are(rows):
    digests = row_digests(pa.Table.from_pylist(rows, SCHEMA)).tolist()
    assert len({*map(key, rows)}) == len({*digests})
    by_digest = {}
    for row, digest in zip(rows, digests, strict=True):
        assert by_digest.setdefault(digest, key(row)) == key(row)


@given(st.lists(ROWS, min_size=1, max_size=5))
def test_other_kinds_of_column_order_and_chunks_change_nothing(rows):
    table = pa.Table.from_pylist(rows, SCHEMA)
    large = table.set_column(2, "s", table["s"].cast(pa.large_string())).set_column(
        3, "b", table["b"].cast(pa.large_binary())
    )
    cut = pa.concat_tables([table.slice(0, 1), table.slice(1)]).select(SCHEMA.names[::-1])
    for other in (large, cut):
        assert row_digests(other).tolist() == row_digests(table).tolist()


def test_a_missing_column_is_one_of_nulls():
    table = pa.table({"n": [1, 2]})
    assert row_digests(table.append_column("later", pa.nulls(2))).tolist() == row_digests(table).tolist()


def test_decimals_of_one_number_are_equal():
    one, other = (
        pa.table({"m": pa.array([Decimal("1.50")], kind)}) for kind in (pa.decimal128(5, 2), pa.decimal128(9, 2))
    )
    assert row_digests(one).tolist() == row_digests(other).tolist()


@pytest.mark.parametrize("number", [2**60, -(2**60)])
def test_times_in_a_struct_may_be_of_any_year(number):
    """As a producer gives them that takes milliseconds for microseconds, and as no calendar of Python's has them."""
    times = [pa.array([n], pa.int64()).cast(pa.timestamp("us", tz="UTC")) for n in (number, number, number + 1)]
    one, same, other = (row_digests(pa.table({"x": pa.StructArray.from_arrays([at], ["at"])})) for at in times)
    assert one.tolist() == same.tolist() != other.tolist()
