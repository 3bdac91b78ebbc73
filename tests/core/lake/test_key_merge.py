"""The merge of a derived table: what a dictionary would hold, in either way, killed, compacted, and read by several."""

import os
from itertools import count
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import TransientError
from kgs_core.lake.delta.log_store import EntryExistsError
from kgs_core.lake.derived import derived_table, live_file
from kgs_core.lake.derived.deletion_vectors import packed, unpacked
from kgs_core.lake.derived.derived_table import DerivedTable
from kgs_core.lake.derived.kept_values import KEPT
from kgs_core.lake.derived.key_merge import key_merge
from kgs_core.lake.derived.newest_rows import DELETED
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.storage import Storage
from tests.failpoints import KilledError

SCHEMA = pa.schema(
    [
        *(("k", pa.int64()), ("k2", pa.string()), ("_partition", pa.int32()), ("_offset", pa.int64())),
        *(("v", pa.string()), ("w", pa.list_(pa.struct([("x", pa.int64())])))),
    ]
)
CHANGES = pa.schema([*SCHEMA, (DELETED, pa.bool_()), (KEPT, pa.list_(pa.string()))])
APP = "kgs/latest/x"
_numbers = count()
changes = st.tuples(
    st.integers(0, 11), st.sampled_from("ab"), st.integers(0, 60), st.booleans(), st.sets(st.sampled_from(["v", "w"]))
)
batches = st.lists(
    st.tuples(
        st.lists(changes, max_size=12, unique_by=lambda change: change[:2]),
        st.sampled_from(
            ["", "", "killed", "lost race", "compacted by others", "checkpoint", "full disk", "old vectors"]
        ),
    ),
    min_size=1,
    max_size=12,
)


def rows_of(batch):
    return [
        {
            **dict(zip(SCHEMA.names, (k, k2, 0, offset, f"v{offset}", [{"x": offset}]), strict=True)),
            DELETED: deleted,
            KEPT: sorted(kept) or None,
        }
        for k, k2, offset, deleted, kept in batch
    ]


def merged(state, row):
    """What a dictionary does with a change."""
    key = row["k"], row["k2"]
    former = state.get(key)
    if former is not None and former["_offset"] >= row["_offset"]:
        return
    new = {name: row[name] for name in SCHEMA.names}
    new |= {name: former[name] for name in row[KEPT] or () if former}
    if row[DELETED]:
        state.pop(key, None)
    else:
        state[key] = new


def read(uri, *, vectors):
    """Rows in order, which all readers agree on."""
    sql = "select k, k2, _partition, _offset, v, w from t"
    found = [pa.table(QueryBuilder().register("t", DeltaTable(uri)).execute(sql).read_all())]
    found.append(pl.scan_delta(uri).collect().to_arrow())
    if not vectors:
        found.append(DeltaTable(uri).to_pyarrow_table())
    rows = [sorted(table.select(SCHEMA.names).to_pylist(), key=lambda row: (row["k"], row["k2"])) for table in found]
    assert all(each == rows[0] for each in rows)
    return rows[0]


class MergedTable:
    """A derived table that is opened anew for each step, as after a kill."""

    def __init__(self, folder, *, vectors):
        self.storage, self.name, self.vectors = Storage(str(folder)), f"d{next(_numbers)}", vectors
        self.written = 0
        self.uri = self.storage.uri(self.name)

    def opened(self):
        lake = LakeSettings(root=self.storage.root)
        table = DerivedTable(self.storage, self.name, "t", lake, deletion_vectors=self.vectors)
        table.load(SCHEMA)
        return table

    def merge(self, rows, number, event, killer):
        def merge(table):
            table.apply(key_merge(table.files, rows, ["k", "k2"], "offset", SCHEMA), {APP: number + 1})

        stale = self.opened()
        assert stale.position(APP) == number
        if event == "old vectors":
            for path in Path(self.uri).glob("_dv/*.bin"):
                os.utime(path, (1, 1))
        former = self.rows_of(stale)
        if event == "killed":
            killer["latest-written"] = 1
            with pytest.raises(KilledError):
                merge(stale)
        self.merged_or_nothing_written(merge, self.full_disk if event == "full disk" else write_table)
        if event == "lost race":
            with pytest.raises(EntryExistsError):
                merge(stale)
        if event == "compacted by others":
            DeltaTable(self.uri).optimize.compact()
        if event == "checkpoint":
            DeltaTable(self.uri).create_checkpoint()
        self.opened().compact(2)
        assert self.rows_of(stale) == former, "a reader of the version before finds all that it needs"

    def merged_or_nothing_written(self, merge, write):
        before = self.all_files()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(derived_table, "write_table", write)
            try:
                merge(self.opened())
            except TransientError:
                assert self.all_files() == before
                patch.undo()
                merge(self.opened())

    def all_files(self):
        return {path for path in Path(self.uri).rglob("*") if path.is_file()}

    def full_disk(self, *given):
        self.written = (self.written + 1) % 3
        if self.written == 0:
            raise TransientError("no space left on device")
        return write_table(*given)

    def rows_of(self, table):
        files = [live_file.LiveFile(self.storage, self.name, file.add) for file in table._files]
        return [file.rows(SCHEMA).to_pylist() for file in files]


@pytest.mark.parametrize("vectors", [True, False])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=batches)
def test_it_holds_what_a_dictionary_would(tmp_path, monkeypatch, killer, batches, vectors):
    monkeypatch.setattr(live_file, "ALIKE", 3)
    table, state = MergedTable(tmp_path, vectors=vectors), {}
    table.opened().replace([SCHEMA.empty_table()], {APP: 0})
    for number, (batch, event) in enumerate(batches):
        rows = pa.Table.from_pylist(rows_of(batch), CHANGES)
        table.merge(rows, number, event, killer)
        for row in rows.to_pylist():
            merged(state, row)
        assert read(table.uri, vectors=vectors) == [state[key] for key in sorted(state)]
    assert table.opened().position(APP) == len(batches)


def test_rows_of_more_than_2_gb_are_never_one_array():
    """Which no array of texts can be; here they are few, and still in parts."""
    rows = pa.Table.from_pylist(rows_of([(k, "a", k, False, set()) for k in range(9)]), CHANGES)
    parts = pa.concat_tables([rows.slice(n, 3) for n in (0, 3, 6)])
    assert key_merge([], parts, ["k", "k2"], "offset", SCHEMA).rows["v"].num_chunks == 3


@given(st.lists(st.tuples(st.integers(0, 300_000), st.integers(1, 70_000)), max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_bitmap_keeps_its_rows(parts):
    rows = np.unique(np.concatenate([np.empty(0, np.int64), *(np.arange(a, a + n) for a, n in parts)]))
    assert unpacked(packed(rows)).tolist() == rows.tolist()
