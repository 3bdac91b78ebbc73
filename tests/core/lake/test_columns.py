"""What fits into what, and what a table lacks: nested columns, names, widths."""

import json

import pyarrow as pa
import pytest
from deltalake import Schema
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.lake.delta.evolution import with_columns
from kgs_core.lake.delta.table_log import TableMetadata
from kgs_core.lake.files.columns import as_wide_as_there, lacking, misfits, plain, widened

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


def test_of_a_struct_only_the_fields_that_it_lacks_are_added_also_inside_lists():
    there = pa.schema([("s", pa.struct([("x", pa.int64())])), ("l", pa.list_(pa.struct([("y", pa.string())])))])
    wanted = pa.schema(
        [("s", pa.struct([("z", pa.string()), ("x", pa.int64())])), ("l", pa.list_(pa.struct([("w", pa.int64())])))]
    )
    more = lacking(there, wanted)
    assert [str(f.type) for f in more] == ["struct<z: string>", "list<item: struct<w: int64>>"]
    assert [str(plain(f.type)) for f in joined(there, more)] == [
        "struct<x: int64, z: string>",
        "list<item: struct<y: string, w: int64>>",
    ]


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
