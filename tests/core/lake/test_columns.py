"""What fits into what, what a table lacks, and what it is never given: nested columns, names, widths, depths."""

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.errors import PermanentError
from kgs_core.lake.delta import evolution
from kgs_core.lake.delta.evolution import add_columns, with_columns
from kgs_core.lake.delta.table_log import TableLog, TableMetadata
from kgs_core.lake.files.columns import as_wide_as_there, lacking, misfits, plain, widened
from tests.one_column import LAKE, table_at

KINDS = st.recursive(
    st.sampled_from([pa.int64(), pa.string(), pa.float64()]),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        st.dictionaries(st.sampled_from("abcd"), inner, min_size=1).map(lambda fields: pa.struct(list(fields.items()))),
    ),
    max_leaves=6,
)
SCHEMAS = st.dictionaries(st.sampled_from("pqrst"), KINDS, min_size=1).map(
    lambda fields: pa.schema(list(fields.items()))
)


def metadata_of(columns):
    return TableMetadata({"id": "t", "schemaString": Schema.from_arrow(columns).to_json()}, columns)


def joined(there, more):
    return pa.schema(Schema.from_json(with_columns(metadata_of(there), more)["schemaString"]))


@given(SCHEMAS, SCHEMAS)
def test_what_is_added_leaves_nothing_to_add_and_every_older_file_fits(there, wanted):
    now = joined(there, lacking(there, wanted))
    assert lacking(now, wanted) == []
    assert misfits(there, now) == []
    same_kinds = all(
        plain(wanted.field(n).type) == plain(there.field(n).type) for n in {*wanted.names} & {*there.names}
    )
    if same_kinds:
        assert misfits(wanted, now) == []
    assert [f.name for f in now][: len(there)] == there.names


def test_a_name_that_is_there_with_another_type_or_case_is_not_added():
    there = pa.schema([("Name", pa.string()), ("n", pa.int64())])
    wanted = pa.schema([("name", pa.string()), ("n", pa.string()), ("m", pa.int64()), ("M", pa.int64())])
    assert [f.name for f in lacking(there, wanted)] == ["m"]


def test_what_is_known_of_columns_that_are_there_is_kept():
    there = pa.schema([pa.field("x", pa.int64(), nullable=False, metadata={"comment": "how many"})])
    metadata = TableMetadata(
        {"id": "t", "configuration": {"delta.appendOnly": "true"}, "schemaString": Schema.from_arrow(there).to_json()},
        there,
    )
    now = with_columns(metadata, [pa.field("y", pa.string())])
    before, added = json.loads(now["schemaString"])["fields"]
    assert (before["nullable"], before["metadata"]) == (False, {"comment": "how many"})
    assert (added["name"], added["type"], added["nullable"]) == ("y", "string", True)
    assert (now["id"], now["configuration"]) == ("t", {"delta.appendOnly": "true"})


@pytest.mark.parametrize(
    ("kind", "wide"),
    [
        (pa.int8(), pa.int64()), (pa.int32(), pa.int64()), (pa.float32(), pa.float64()), (pa.string(), pa.string()),
        (pa.list_(pa.struct([("a", pa.int32())])), pa.list_(pa.struct([("a", pa.int64())]))),
    ],
    ids=str,
)  # fmt: skip
def test_columns_are_made_wide_and_those_that_are_there_keep_their_width(kind, wide):
    wanted = pa.schema([("x", kind)])
    assert widened(wanted) == pa.schema([("x", wide)])
    assert as_wide_as_there(widened(wanted), wanted).types == [kind]
    assert as_wide_as_there(wanted, widened(wanted)).types == [wide]
    assert as_wide_as_there(wanted, pa.schema([("x", pa.date32())])).types == [kind]


def test_width_of_a_field_that_is_there_is_kept_beside_one_that_is_new():
    there, wanted = [("a", pa.int32())], [("b", pa.int64()), ("a", pa.int64())]
    found = as_wide_as_there(pa.schema([("s", pa.struct(wanted))]), pa.schema([("s", pa.struct(there))]))
    assert found.types == [pa.struct([("b", pa.int64()), ("a", pa.int32())])]


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
