"""What a table's new columns may be: nothing that readers of it could not read, however it is nested."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kgs_core.errors import PermanentError
from kgs_core.lake.delta import evolution
from kgs_core.lake.delta.evolution import add_columns
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.files.columns import lacking
from kgs_core.lake.files.storage import Storage
from tests.one_column import LAKE, table_at


@pytest.fixture
def storage(tmp_path):
    return Storage(str(tmp_path))


def nested(depth, list_every=0):
    kind = pa.int64()
    for level in range(depth):
        kind = pa.list_(kind) if list_every and level % list_every == 0 else pa.struct([(f"f{level}", kind)])
    return kind


@pytest.mark.parametrize("list_every", [0, 2])
def test_what_is_nested_too_deep_is_never_added_for_nobody_could_read_the_table(storage, list_every):
    for depth in (31, 33, 50):
        table_at(storage, name=f"t{depth}")
        log = TableLog(storage, f"t{depth}", pa.schema([]), LAKE)
        more = [pa.field("deep", nested(depth, list_every=list_every)), pa.field("y", pa.string())]
        add_columns(log, more)
        there = DeltaTable(storage.uri(f"t{depth}")).schema()
        assert [f.name for f in there.fields] == (["x", "deep", "y"] if depth < 32 else ["x", "y"])


def test_fields_that_no_table_can_have_are_passed_over_at_any_depth():
    odd = pa.struct([("a", pa.int64()), ("A", pa.string()), ("", pa.int8()), ("b c", pa.int8())])
    wanted = [pa.field("s", odd), pa.field("none", pa.struct([("x;", pa.int8())])), pa.field("l", pa.list_(odd)),
              pa.field("S", pa.int8())]  # fmt: skip
    kept = pa.struct([("a", pa.int64())])
    assert lacking([], wanted) == [pa.field("s", kept), pa.field("l", pa.list_(kept))]


def test_a_schema_that_no_reader_takes_is_not_written(storage, monkeypatch):
    table_at(storage)
    monkeypatch.setattr(evolution, "lacking", lambda there, wanted: list(wanted))
    with pytest.raises(PermanentError, match="would make it unreadable"):
        add_columns(TableLog(storage, "t", pa.schema([]), LAKE), [pa.field("deep", nested(60))])
    assert [f.name for f in DeltaTable(storage.uri("t")).schema().fields] == ["x"]


def test_a_struct_that_is_there_is_not_made_too_deep_either():
    there, deep = nested(20), nested(60)
    for level in reversed(range(20)):
        deep = pa.struct([(f"f{level}", deep)])
    assert lacking([pa.field("d", there)], [pa.field("d", deep)]) == []
