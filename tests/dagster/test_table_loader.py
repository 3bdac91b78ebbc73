"""Tables as arguments of a user's assets: which rows, as what, and what is refused."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import ConfigError
from kgs_core.lake.derived.derived_table import DerivedTable
from kgs_core.lake.derived.key_merge import key_merge
from kgs_core.lake.derived.newest_rows import DELETED
from kgs_core.lake.files.storage import Storage
from kgs_dagster.table_loader import TableLoader
from tests.configuration import text_of

DAY = datetime(2026, 11, 1, tzinfo=UTC)
RULES = [
    {
        "topic": "orders",
        "table": "bronze/orders",
        "newest_rows": {"table": "gold/orders", "deletion_vectors": True},
    },
    {"pattern": "many.*", "table": "bronze/{topic}"},
]
HOURS = ("g", "lake", "bronze", "orders_hours")
TABLE = ("g", "lake", "bronze", "orders")


@pytest.fixture
def loader(tmp_path):
    config = tmp_path / "kgs.yaml"
    config.write_text(text_of(lake={"root": str(tmp_path / "lake")}, topics=RULES))
    for hours in (range(3), range(2, 30)):  # two files that overlap
        stamps = pa.array([DAY + timedelta(hours=h) for h in hours], pa.timestamp("us", tz="UTC"))
        rows = pa.table({"n": pa.array(hours, pa.int64()), "_timestamp": stamps})
        write_deltalake(tmp_path / "lake/bronze/orders", rows, mode="append")
    return TableLoader(config=str(config))


def loaded(loader, key, kind, partitions=None, partition=None):
    """What an asset that has the table as its argument is given."""
    seen = []

    @dg.asset(ins={"rows": dg.AssetIn(dg.AssetKey(key), input_manager_key="kgs")}, partitions_def=partitions)
    def mine(rows: kind) -> None:
        seen.append(rows)

    hours = dg.HourlyPartitionsDefinition("2026-11-01-00:00") if key == HOURS else None
    spec = dg.AssetSpec(key, partitions_def=hours)
    result = dg.materialize(
        [spec, mine], resources={"kgs": loader}, partition_key=partition, selection=[mine], raise_on_error=False
    )
    if not result.success:
        (event,) = result.get_step_failure_events()
        return event.step_failure_data.error.cause.message
    return seen[0]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
def test_a_table_is_what_the_argument_is_annotated_with(loader, kind):
    found = loaded(loader, TABLE, kind)
    assert isinstance(found, kind)
    assert sorted(found["n"].to_pylist() if kind is pa.Table else found["n"]) == sorted([*range(3), *range(2, 30)])


def test_of_newest_rows_those_that_deletion_vectors_delete_are_not_there(loader, tmp_path):
    table = DerivedTable(
        Storage(str(tmp_path / "lake")),
        "gold/orders",
        "bronze/orders",
        LakeSettings(root=str(tmp_path)),
        deletion_vectors=True,
    )
    rows = pa.table(
        {"k": pa.array(range(9)), "_partition": pa.array([0] * 9, pa.int32()), "_offset": pa.array(range(9))}
    )
    table.load(rows.schema)
    table.replace([rows], {"kgs/latest/x": 1})
    newer = rows.slice(4, 1).set_column(2, "_offset", pa.array([99]))
    table.load(rows.schema)
    changes = newer.append_column(DELETED, pa.array([False]))
    table.apply(key_merge(table.files, changes, ["k"], "offset", table.schema), {"kgs/latest/x": 2})
    found = loaded(loader, ("g", "lake", "gold", "orders"), pa.Table)
    assert found.schema == rows.schema
    assert dict(zip(found["k"].to_pylist(), found["_offset"].to_pylist(), strict=True)) == {
        **{k: k for k in range(9)},
        4: 99,
    }
    assert found.num_rows == 9


@pytest.mark.parametrize(
    ("partitions", "partition", "expected"),
    [
        (dg.DailyPartitionsDefinition("2026-11-01"), "2026-11-01", [0, 1, 2, *range(2, 24)]),
        (dg.HourlyPartitionsDefinition("2026-11-01-00:00"), "2026-11-01-02:00", [2, 2]),
        (dg.HourlyPartitionsDefinition("2026-11-01-00:00"), "2026-11-03-00:00", []),
    ],
)
def test_of_complete_hours_only_the_rows_of_the_partition_are_read(loader, partitions, partition, expected):
    assert sorted(loaded(loader, HOURS, pd.DataFrame, partitions, partition)["n"]) == expected


@pytest.mark.parametrize("day", ["2026-11-01", "2026-11-03"])
def test_columns_have_their_types_also_where_no_file_has_them(loader, tmp_path, day):
    stamps = pa.array([DAY + timedelta(days=9)], pa.timestamp("us", tz="UTC"))
    later = pa.table({"n": pa.array([1], pa.int64()), "_timestamp": stamps, "word": ["x"]})
    write_deltalake(tmp_path / "lake/bronze/orders", later, mode="append", schema_mode="merge")
    found = loaded(loader, HOURS, pa.Table, dg.DailyPartitionsDefinition("2026-11-01"), day)
    assert found.schema == later.schema


@pytest.mark.parametrize(
    ("key", "kind", "words"),
    [
        (("g", "lake", "other"), pd.DataFrame, "no table of"),
        (("g", "lake", "bronze", "manyany"), pd.DataFrame, "several tables"),
        (TABLE, dict, "builtins.dict: a table is loaded as pandas.DataFrame"),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_words(loader, key, kind, words):
    assert words in loaded(loader, key, kind)


def test_nothing_is_stored(loader):
    with pytest.raises(ConfigError, match="stores nothing"):
        loader.handle_output(dg.build_output_context(asset_key=dg.AssetKey(TABLE)), 1)
