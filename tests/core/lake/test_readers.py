"""A partitioned table with odd characters, nulls and nested columns reads the same by each reader; Spark: `peer`.

DuckDB's own extension for Delta is downloaded from a server of its own at first use, so DuckDB reads the files that
deltalake's dataset names.
"""

import importlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from kgs_core.lake.delta.delta_maintenance import maintain_table
from tests.layout_sink import LayoutSink

COLUMNS = {
    "s": "string",
    "d": "date",
    "price": "decimal(10,2)",
    "items": "array<struct<sku:string,sizes:array<double>>>",
    "tags": "map<string,int>",
    "raw": "binary",
}
WANTED = ["_partition", "_offset", *COLUMNS, "_timestamp_day"]
TEXTS = [
    None, "plain", "a/b", "a:b", "a%3Ab", "Zürich ü", "q?#&+;,", "..", "'\"\\", "😀", "a=b", "NULL", "null", "a%b",
    "日本", "e\u0301", "tab\t", "nul\x00", ".", "~", "!$@()", "<>|", "[x]{y}^", "new\nline", " lead", "trail ", "None",
    "ü" * 20,
]  # fmt: skip
VALUES: list[dict[str, Any]] = [
    {
        "s": text,
        "d": "2026-01-31" if number % 3 else None,
        "price": None if number % 4 == 0 else f"{number}.50",
        "items": [None, [], [{"sku": text, "sizes": [0.5, None]}, None]][number % 3],
        "tags": None if number % 2 else {"a%b": number, "": None},
        "raw": None if number == 5 else "AP8=",
    }
    for number, text in enumerate(TEXTS * 2)
]


def of_polars(uri: str) -> pa.Table:
    return pl.read_delta(uri).to_arrow()


def of_deltalake(uri: str) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(uri)).execute("select * from t").read_all())


def of_pyarrow(uri: str) -> pa.Table:
    return DeltaTable(uri).to_pyarrow_table()


def of_duckdb(uri: str) -> pa.Table:
    duckdb = importlib.import_module("duckdb")
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("t", DeltaTable(uri).to_pyarrow_dataset())
        return connection.sql("select * from t").to_arrow_table()


def plain(value: Any) -> Any:
    """The value without what readers differ in: a map is pairs, or structs of key and value."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, tuple):
        return dict(zip(("key", "value"), map(plain, value), strict=True))
    return value


def rows_of(read: Callable[[str], pa.Table], uri: str) -> list[dict[str, Any]]:
    found = [plain(row) for row in read(uri).select(WANTED).to_pylist()]
    return sorted(found, key=lambda row: (row["_partition"], row["_offset"]))


@pytest.fixture
def sink(tmp_path: Path) -> LayoutSink:
    layout: dict[str, Any] = {"partition_by": ["s", "d", "day(_timestamp)"]}
    sink = LayoutSink(tmp_path, {0: VALUES, 3: VALUES[:5]}, schema=COLUMNS, **layout).started()
    sink.drain(7)
    return sink


@pytest.mark.parametrize("read", [of_deltalake, of_pyarrow, of_duckdb])
def test_each_reader_reads_what_was_written(sink: LayoutSink, read: Callable[[str], pa.Table]) -> None:
    uri = sink.storage.uri("t")
    expected = rows_of(of_polars, uri)
    assert [(row["_partition"], row["_offset"]) for row in expected] == sink.expected()
    assert [row["s"] for row in expected] == [value["s"] for value in [*VALUES, *VALUES[:5]]]
    assert [row["price"] for row in expected[:2]] == [None, Decimal("1.50")]
    assert [row["items"] for row in expected[1:3]] == [[], [{"sku": "a/b", "sizes": [0.5, None]}, None]]
    assert sorted(expected[0]["tags"], key=str) == [{"key": "", "value": None}, {"key": "a%b", "value": 0}]
    assert (expected[4]["raw"], expected[5]["raw"]) == (b"\x00\xff", None)
    assert rows_of(read, uri) == expected
    maintain_table(sink.storage, "t")
    assert rows_of(read, uri) == expected
