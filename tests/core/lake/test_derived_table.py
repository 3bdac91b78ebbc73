"""The derived table as readers find it."""

import os

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import UnsafeError
from kgs_core.lake.delta.delta_maintenance import maintain_table
from kgs_core.lake.derived import derived_table
from kgs_core.lake.derived.deletion_vectors import FOLDER
from kgs_core.lake.derived.derived_table import DerivedTable
from kgs_core.lake.derived.key_merge import key_merge
from kgs_core.lake.derived.newest_rows import DELETED
from kgs_core.lake.files.storage import Storage


def test_vectors_that_nobody_needs_are_removed_and_vacuum_leaves_the_others(tmp_path, monkeypatch):
    storage = Storage(str(tmp_path))
    table = DerivedTable(storage, "d", "t", LakeSettings(root=storage.root), deletion_vectors=True)
    columns = {"k": pa.array(range(1000)), "_partition": pa.array([0] * 1000, pa.int32())}
    rows = pa.table({**columns, "_offset": pa.array(range(1000))})
    table.load(rows.schema)
    table.replace([rows], {"kgs/latest/x": 1})
    for number in range(2, 12):
        table.load(rows.schema)
        newer = pa.table({**columns, "_offset": pa.array([number * 1000] * 1000)}).slice(number * 10, 10)
        deleted = pa.array([False] * 10)
        changes = newer.append_column(DELETED, deleted)
        table.apply(key_merge(table.files, changes, ["k"], "offset", table.schema), {"kgs/latest/x": number})
    vectors = tmp_path / "d" / FOLDER
    assert len(list(vectors.iterdir())) == 10
    for file in [*vectors.iterdir(), *(tmp_path / "d").glob("*.parquet")]:
        os.utime(file, (0, 0))
    assert maintain_table(storage, "d").problem is None
    table.load(rows.schema)
    monkeypatch.setattr(derived_table, "replaced_vectors", lambda *_: set())  # as hours later
    assert table.compact(2)
    assert len(list(vectors.iterdir())) == 1
    assert pl.scan_delta(storage.uri("d")).select(pl.col("k").n_unique(), pl.len()).collect().row(0) == (1000, 1000)


def test_two_tables_are_not_derived_into_one(tmp_path):
    """Two groups' rules may name the same: each would make it anew from its own rows, in turns."""
    storage, lake = Storage(str(tmp_path)), LakeSettings(root=str(tmp_path))
    rows = pa.table({"_key": pa.array([b"k"]), "a": pa.array([1])})
    first = DerivedTable(storage, "d", "t", lake)
    first.load(rows.schema)
    with pytest.raises(UnsafeError, match="table d: has the newest row of each key of t, not of u: name another table"):
        DerivedTable(storage, "d", "u", lake).load(rows.schema)
    wider = rows.append_column("b", pa.array([2]))
    first.load(wider.schema)
    first.replace([wider], {"kgs/latest/x": 1})
    with pytest.raises(UnsafeError, match="not of u"):
        DerivedTable(storage, "d", "u", lake).load(rows.schema)
    DerivedTable(storage, "d", "t", lake).load(rows.schema)


@pytest.mark.parametrize(
    ("feature", "is_read"), [(TableFeatures.RowTracking, True), (TableFeatures.V2Checkpoint, False)]
)
def test_features_that_somebody_has_added_stay_or_are_refused(tmp_path, feature, is_read):
    storage, lake = Storage(str(tmp_path)), LakeSettings(root=str(tmp_path))
    rows = pa.table({"_key": pa.array([b"k"]), "a": pa.array([1])})
    DerivedTable(storage, "d", "t", lake).load(rows.schema)
    DeltaTable(storage.uri("d")).alter.add_feature(feature, allow_protocol_versions_increase=True)
    former = DeltaTable(storage.uri("d")).protocol().writer_features
    table = DerivedTable(storage, "d", "t", lake, deletion_vectors=True)
    if not is_read:
        with pytest.raises(UnsafeError, match="v2Checkpoint, which kgs does not read"):
            table.load(rows.schema)
        return
    table.load(rows.schema)
    assert {*DeltaTable(storage.uri("d")).protocol().writer_features} == {*former, "deletionVectors"}
