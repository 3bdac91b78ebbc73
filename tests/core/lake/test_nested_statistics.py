"""Nested columns in files and their statistics: readers find every row, whatever they ask for and skip by."""

import datetime as dt
import json
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.lake.delta.delta_maintenance import maintain_table
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.row_schema import schema_of
from kgs_core.lake.files.storage import Storage
from tests.one_column import table_at

SCHEMA = schema_of(
    {
        "n": "int",
        "s.x": "long",  # in Parquet it has the path of the field below
        "s": "struct<x:long,l:array<int>,f:double,in:struct<text:string,at:timestamp>>",
        "l": "array<struct<x:long>>",
        "o": "struct<only:array<int>>",
        "m": "map<string,int>",
        "d": "decimal(38,10)",
        "small": "byte",
        "raw": "binary",
    }
)
AT = dt.datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=dt.UTC)
BIG = Decimal("1234567890123456789012345678.0123456789")
FULL = {"s.x": 7, "s": {"x": 70, "l": [1], "f": 0.5, "in": {"text": "a", "at": AT}}, "l": [{"x": 1}],
        "o": {"only": [1]}, "m": [("k", 1)], "d": BIG, "small": -128, "raw": b"x"}  # fmt: skip
ROWS = [
    {},
    FULL,
    {"s": {"x": None, "f": float("nan"), "in": None}, "o": {}, "l": [], "m": []},
    {"s": {"x": 71, "l": [], "f": float("inf"), "in": {"text": "b" * 99}}, "d": -BIG, "small": 127, "s.x": 6},
]


def written(folder, rows):
    batch = pa.RecordBatch.from_pylist([{"n": None} | row for row in rows], schema=SCHEMA)
    (folder / "t").mkdir(parents=True, exist_ok=True)
    return write_table(Storage(str(folder)), "t", [batch], SCHEMA)


def test_structs_are_objects_of_their_fields_bounds(tmp_path):
    text = written(tmp_path, [FULL | {"n": 1}]).stats
    stats = json.loads(text, parse_float=Decimal)
    struct = {"x": 70, "in": {"text": "a", "at": "2026-01-31T12:00:00.000Z"}}
    assert stats["minValues"] == {"n": 1, "s.x": 7, "s": struct, "o": {}, "d": BIG, "small": -128}
    assert stats["maxValues"]["s"]["in"]["at"] == "2026-01-31T12:00:00.001Z"
    none = {"n": 0, "s.x": 0, "s": {"x": 0, "in": {"text": 0, "at": 0}}, "o": {}, "d": 0, "small": 0}
    assert stats["nullCount"] == none


READER = """
import json, os, sys
import pyarrow as pa
import pyarrow.dataset as ds
from decimal import Decimal
from deltalake import DeltaTable, QueryBuilder

table, field = DeltaTable(sys.argv[1]), ds.field
big = Decimal("1234567890123456789012345678.0123456789")
decimal = lambda value: pa.scalar(value, pa.decimal128(38, 10))
filters = {
    "s.x": field("s.x") == 7, "s / x": field("s", "x") == 70, "s / x above": field("s", "x") > 70,
    "s / f": field("s", "f") > 1, "text": field("s", "in", "text") == "b" * 99, "no s": field("s").is_null(),
    "s": field("s").is_valid(), "no s / x": field("s", "x").is_null(), "no o": field("o").is_null(),
    "no l": field("l").is_null(), "no m": field("m").is_null(), "d": field("d") == decimal(big),
    "d below": field("d") < decimal(Decimal(0)), "small": field("small") == pa.scalar(127, pa.int8()),
}
queries = {
    "s.x": '"s.x" = 7', "s / x": "s['x'] = 70", "s / x above": "s['x'] > 70", "s / f": "s['f'] > 1",
    "text": f"s['in']['text'] = '{'b' * 99}'", "no s": "s is null", "s": "s is not null", "no s / x": "s['x'] is null",
    "no o": "o is null", "no l": "l is null", "no m": "m is null",
    "d": f"d = arrow_cast('{big}', 'Decimal128(38,10)')", "d below": "d < 0", "small": "small = 127",
}
dataset = table.to_pyarrow_dataset()
by_dataset = {name: sorted(dataset.to_table(["n"], filter=f)["n"].to_pylist()) for name, f in filters.items()}
asked = QueryBuilder().register("t", table)
by_query = {
    name: sorted(pa.table(asked.execute(f"select n from t where {q}").read_all())["n"].to_pylist())
    for name, q in queries.items()
}
print(json.dumps([by_dataset, by_query]), flush=True)
os._exit(0)
"""


def test_readers_that_skip_files_find_every_row(tmp_path):
    """In a process of its own, for deltalake's pyarrow reader may abort its own."""
    storage = Storage(str(tmp_path))
    table = table_at(storage, schema=SCHEMA)
    for n, row in enumerate(ROWS):
        table.commit({"a": n or None}, {"a": n + 1}, [written(tmp_path, [row | {"n": n}])])
    command = [sys.executable, "-c", READER, storage.uri("t")]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    by_dataset, by_query = json.loads(out)
    wanted = {"s.x": [1], "s / x": [1], "s / x above": [3], "s / f": [3], "text": [3], "no s": [0], "s": [1, 2, 3],
              "no s / x": [0, 2], "no o": [0, 3], "no l": [0, 3], "no m": [0, 3], "d": [1], "d below": [3],
              "small": [3]}  # fmt: skip
    assert by_dataset == wanted
    assert by_query == wanted | {"s / f": by_query["s / f"]}  # whether NaN is above 1 is the reader's own
    assert 3 in by_query["s / f"]


ASKED = """
import os, sys
import pyarrow as pa
import pyarrow.dataset as ds
from decimal import Decimal
from deltalake import DeltaTable

dataset = DeltaTable(sys.argv[1]).to_pyarrow_dataset()
wanted = [ds.field("d") == pa.scalar(Decimal(text), dataset.schema.field("d").type) for text in sys.argv[2:]]
print([dataset.to_table(filter=each)["n"].to_pylist() for each in wanted], flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(("digits", "left", "values"), [
    (15, 1, ["1234567890123.91", "1234567890123.93"]),
    (16, 2, ["12345678901234.91", "12345678901234.93"]),
    (20, 2, ["123456789012345678.91", "123456789012345678.97"]),
])  # fmt: skip
def test_upkeep_hides_no_decimal(tmp_path, digits, left, values):
    """With 18 digits deltalake's compaction makes both bounds the whole number above, and all readers find nothing."""
    schema = schema_of({"n": "int", "d": f"decimal({digits},2)"})
    storage = Storage(str(tmp_path))
    table = table_at(storage, schema=schema)
    for n, value in enumerate(values):
        batch = pa.RecordBatch.from_pylist([{"n": n, "d": Decimal(value)}], schema=schema)
        table.commit({"a": n or None}, {"a": n + 1}, [write_table(storage, "t", [batch], schema)])
    upkeep = maintain_table(storage, "t")
    assert (upkeep.files, upkeep.problem) == ((2, left), None)
    command = [sys.executable, "-c", ASKED, storage.uri("t"), *values]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert json.loads(out) == [[0], [1]]


NUMBERS = st.decimals(-(10**27), 10**27, places=10)


@settings(max_examples=100)
@given(st.lists(st.tuples(NUMBERS | st.none(), st.none() | st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=6))
def test_bounds_of_decimals_and_inner_fields_lose_no_digit(tmp_path_factory, rows):
    file = written(tmp_path_factory.getbasetemp() / "bounds", [{"d": d, "s": {"x": x}} for d, x in rows])
    stats = json.loads(file.stats, parse_float=Decimal, parse_int=Decimal)
    decimals, inner = [d for d, _ in rows if d is not None], [x for _, x in rows if x is not None]
    for of, values in ((lambda tree: tree.get("d"), decimals), (lambda tree: tree["s"].get("x"), inner)):
        assert of(stats["minValues"]) == min(values, default=None)
        assert of(stats["maxValues"]) == max(values, default=None)
        assert of(stats["nullCount"]) == len(rows) - len(values)
