"""Rows to tables, by the value of a column of any type that a route may have."""

import pyarrow as pa
import pytest

from kgs_core.config import TopicRule
from kgs_core.lake.files.layout import table_schema
from kgs_core.lake.files.row_schema import parsed_schema
from kgs_core.lake.topics.routing import routed, unwritten


def rule(kind, tables):
    route = {"column": "k", "tables": tables}
    return TopicRule.model_validate({"topic": "t", "format": "json", "schema": {"k": kind}, "route": route})


@pytest.mark.parametrize(
    ("kind", "column", "tables", "own", "sides"),
    [
        ("string", pa.array(["a", "b", None, "", "A", "a"]), {"a": "x", "": "y"}, [1, 2, 4], {"x": [0, 5], "y": [3]}),
        ("string", pa.array(["a", "b"], pa.large_string()), {"a": "x", "b": "x"}, [], {"x": [0, 1]}),
        ("byte", pa.array([1, -1, None, 0], pa.int8()), {1: "x", -1: "y"}, [2, 3], {"x": [0], "y": [1]}),
        ("long", pa.array([2**62, 2**62 + 1]), {2**62: "x", 5: "y"}, [1], {"x": [0]}),
        ("boolean", pa.array([True, None, False]), {True: "x"}, [1, 2], {"x": [0]}),
    ],
)
def test_each_row_goes_into_one_table(kind, column, tables, own, sides):
    found = rule(kind, tables)
    rows = pa.table({"k": column, "n": pa.array(range(len(column)))})
    left, parts = routed(found, found.side_tables_of("t"), rows)
    assert left["n"].to_pylist() == own
    assert {table: part["n"].to_pylist() for table, part in parts.items()} == sides


def test_rows_below_a_mark_are_left_out():
    rows = pa.table({"_partition": pa.array([0, 0, 1, 2], pa.int32()), "_offset": pa.array([4, 5, 4, 0])})
    assert unwritten(rows, {0: 5, 1: None}).to_pylist() == rows.slice(1).to_pylist()
    assert unwritten(rows, {}) is rows


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        (pa.field("other", pa.string()), "there is no column 'k'"),
        (pa.field("k", pa.float64()), "column 'k' is double: take one"),
        (pa.field("k", pa.int64()), "value a is not a whole number"),
        (pa.field("k", pa.bool_()), "value a is not true or false"),
    ],
)
def test_columns_that_only_the_start_of_a_consumer_tells_are_checked_there(field, problem):
    found = TopicRule.model_validate(
        {"topic": "t", "transform_arrow": "m:f", "route": {"column": "k", "tables": {"a": "x"}}}
    )
    with pytest.raises(ValueError, match=problem):
        table_schema(found, parsed_schema(found, pa.schema([field])))
