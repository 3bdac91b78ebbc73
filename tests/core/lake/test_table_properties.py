"""Tables that kgs refuses to write to."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kgs_core.errors import UnsafeError
from kgs_core.lake.delta.delta_table import DeltaTopicTable
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.delta.table_properties import check_table, wanted_properties
from kgs_core.lake.files.row_schema import DEAD_LETTER_SCHEMA, ORIGIN_FIELDS, VALUE_TYPES
from kgs_core.lake.files.storage import Storage
from tests.one_column import LAKE

SCHEMA = pa.schema(
    [("x", pa.int64()), ("when", pa.timestamp("us", tz="UTC")), *((f.name, f.type) for f in ORIGIN_FIELDS)]
)


def made(tmp_path, schema=SCHEMA, **kwargs):
    return DeltaTable.create(str(tmp_path / "t"), schema=schema, **kwargs)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.setTransactionRetentionDuration", "interval 30 days"),
        ("delta.columnMapping.mode", "name"),
        ("delta.columnMapping.mode", "id"),
        ("delta.enableDeletionVectors", "true"),
        ("delta.enableRowTracking", "true"),
        ("delta.enableTypeWidening", "true"),
    ],
)
def test_property_that_breaks_the_guarantee_is_refused_by_name(tmp_path, key, value):
    table = made(tmp_path, configuration={key: value}, raise_if_key_not_exists=False)
    with pytest.raises(UnsafeError) as caught:
        check_table(table, "t", SCHEMA)
    assert str(caught.value).startswith(f"table t: property {key} = {value} ")


@pytest.mark.parametrize("key", ["delta.enableDeletionVectors", "delta.enableTypeWidening"])
def test_property_that_is_switched_off_is_none(tmp_path, key):
    table = made(tmp_path, configuration={key: "false"}, raise_if_key_not_exists=False)
    check_table(table, "t", SCHEMA)


def test_our_own_properties_are_accepted_and_keep_the_lowest_protocol(tmp_path):
    table = made(tmp_path, configuration=wanted_properties(10))
    check_table(table, "t", SCHEMA)
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    assert table.metadata().configuration["delta.appendOnly"] == "true"


@pytest.mark.parametrize("kind", ["change_data_feed", "naive_timestamp"])
def test_newer_protocol_is_refused(tmp_path, kind):
    schema = SCHEMA if kind == "change_data_feed" else pa.schema([("x", pa.timestamp("us"))])
    configuration = {"delta.enableChangeDataFeed": "true"} if kind == "change_data_feed" else {}
    table = made(tmp_path, schema, configuration=configuration)
    with pytest.raises(UnsafeError, match=r"table t: Delta protocol \d/\d"):
        check_table(table, "t", schema)


@pytest.mark.parametrize(
    ("there", "message"),
    [
        ([("x", pa.int32())], "x is int32, wanted int64"),
        ([], "x is missing"),
        ([("x", pa.int64()), pa.field("y", pa.string(), nullable=False)], "y is not configured, and takes no null"),
        ([("X", pa.int64())], "x is missing"),
        ([("x", pa.string()), ("z", pa.int64())], "x is string, wanted int64"),
    ],
)
def test_other_columns_are_refused_and_named(tmp_path, there, message):
    table = made(tmp_path, pa.schema([*there, ("k", pa.binary())]))
    with pytest.raises(UnsafeError) as caught:
        check_table(table, "t", pa.schema([("x", pa.int64()), ("k", pa.binary())]))
    assert f": its columns are not the configured ones: {message}: fix" in str(caught.value)


def test_every_column_type_that_can_be_configured_comes_back_as_itself(tmp_path):
    schema = pa.schema([*VALUE_TYPES.items(), ("value", pa.binary()), *((f.name, f.type) for f in ORIGIN_FIELDS)])
    for name, wanted in (("t", schema), ("dead_letters", DEAD_LETTER_SCHEMA)):
        storage = Storage(str(tmp_path))
        DeltaTopicTable(TableLog(storage, name, wanted, LAKE)).create()
        check_table(DeltaTable(storage.uri(name)), name, wanted)
