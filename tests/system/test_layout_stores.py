"""Partitioned tables on every kind of store, and read by Spark: keys and folders with odd characters.

A real S3 server is needed, since what becomes of a `%` in a key is decided by clients and server together.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyarrow.fs import FileSelector, FileType

from kgs_core.lake.delta.delta_lake import DeltaLake
from kgs_core.lake.delta.delta_maintenance import maintain_table
from kgs_core.lake.files.row_schema import IDENTITY
from kgs_core.lake.files.storage import Storage
from tests.layout_sink import LayoutSink
from tests.system.delta_spark import rows_of_spark

ODD = [
    None,
    "plain",
    "a b",
    "a/b",
    "a:b",
    "a%b",
    "a%3Ab",
    "Zürich",
    "日本",
    "q?#&+;,",
    "..",
    "~!$@()",
    "\\[x]{y}^",
    "😀",
]
COLUMNS = ["_offset", "s", "i", "d"]
_SPARK = """
table, columns = arguments[0], arguments[1].split(",")
found = spark.read.format("delta").load(table).select(*columns).orderBy("_offset").collect()
rows = [[None if v is None else str(v) for v in row] for row in found]
"""


def filled(storage: Storage) -> LayoutSink:
    """Two files of each value, and two orphans."""
    log = {0: [{"s": s, "i": n % 4, "d": "2026-01-31" if n % 3 else None} for n, s in enumerate(ODD)] * 2}
    layout: dict[str, Any] = {"partition_by": ["s", "d", "day(_timestamp)"]}
    sink = LayoutSink("", log, storage, **layout).started()
    assert sink.read(2) is not None
    sink.drain(len(ODD))
    return sink


def test_rows_are_the_same_for_every_reader_before_and_after_maintenance(new_lake: Callable[[], Storage]) -> None:
    sink = filled(new_lake())
    before = sink.rows()
    assert [row["s"] for row in before] == ODD * 2
    assert [(row["_partition"], row["_offset"]) for row in before] == sink.expected()
    assert rows_of_deltalake(sink) == before
    upkeep = maintain_table(sink.storage, "t")
    assert upkeep is not None
    assert upkeep.problem is None
    assert sink.rows() == rows_of_deltalake(sink) == before
    pinned = DeltaLake(sink.lake).pin("t")
    assert pinned is not None
    found = pa.concat_tables([pinned.read(file, [*IDENTITY, "s"]) for file in pinned.files()])
    assert sorted(found["_offset"].to_pylist()) == list(range(2 * len(ODD)))
    assert not missing(sink), "each file's key is its name"


def missing(sink: LayoutSink) -> set[str]:
    """Names of the log's files that the store does not have, as it lists them."""
    selector = FileSelector(sink.storage.path("t"), recursive=True)
    root = sink.storage.path("t") + "/"
    listed = sink.storage.filesystem().get_file_info(selector)
    there = {info.path.removeprefix(root) for info in listed if info.type == FileType.File}
    pinned = DeltaLake(sink.lake).pin("t")
    assert pinned is not None
    return set(pinned.files()) - there


def rows_of_deltalake(sink: LayoutSink) -> list[dict[str, Any]]:
    table = DeltaTable(sink.storage.uri("t"), storage_options=sink.storage.delta_options())
    found = pa.table(QueryBuilder().register("t", table).execute("select * from t").read_all())
    return sorted(found.drop_columns(["_headers"]).to_pylist(), key=lambda row: row["_offset"])


@pytest.mark.peer
def test_spark_reads_the_same_rows_whatever_its_zone(tmp_path: Path) -> None:
    sink = filled(Storage(str(tmp_path)))
    columns = [*COLUMNS, "_timestamp_day"]
    for _ in range(2):
        found = json.loads(rows_of_spark(_SPARK, sink.storage.uri("t"), ",".join(columns)))
        frame = pl.DataFrame(sink.rows()).select(columns).sort("_offset")
        assert found == [[None if v is None else str(v) for v in row] for row in frame.rows()]
        maintain_table(sink.storage, "t")
