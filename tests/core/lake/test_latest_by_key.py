"""Derived tables: what a plain loop over all records would keep, whatever is killed, repeated, compacted or cleaned."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from kgs_core.errors import ConfigError, UnsafeError
from kgs_core.ingest.replay import redrive
from kgs_core.ingest.replay.redrive import Redrive
from kgs_core.lake.delta.delta_lake import DeltaLake
from kgs_core.lake.derived import latest_by_key
from kgs_core.lake.derived.deletion_vectors import ForeignVectorError
from kgs_core.lake.derived.derived_table import DerivedTable
from kgs_core.lake.derived.latest_by_key import LatestByKeyTable
from kgs_core.lake.topics.topic_table import TopicTable
from tests.core.lake import newest
from tests.core.lake.newest import assert_latest, materialized, settings_of
from tests.kgs_yaml import LONGS
from tests.meanwhile import before
from tests.sink import FakeRecord, Sink

pytestmark = pytest.mark.usefixtures("keyed_records")


def test_it_keeps_what_a_loop_over_all_records_keeps(storage, sink):
    at = {0: 0, 1: 0}
    for step in range(8):
        ends = {p: end + 13 + p for p, end in at.items()}
        sink.ingest({p: (at[p], end) for p, end in ends.items()})
        at = ends
        found = materialized(storage)
        assert (bool(found.anew), found.commits) == (step == 0, 1)
        assert_latest(storage, at)
    before = DeltaTable(storage.uri("t_latest")).version()
    assert materialized(storage).commits == 0
    assert DeltaTable(storage.uri("t_latest")).version() == before


def test_no_table_yet_is_nothing_to_do(storage):
    assert materialized(storage).version is None


def test_what_compaction_rewrites_is_not_new(storage, sink):
    for start in range(0, 40, 10):
        sink.ingest({0: (start, start + 10)})
    materialized(storage)
    DeltaLake(sink.lake).maintain("t", dry_run=False)
    DeltaLake(sink.lake).maintain("t_dead_letters", dry_run=False)
    found = materialized(storage)
    assert (found.anew, found.rows, found.commits) == ("", 0, 0)
    sink.ingest({0: (40, 60)})
    DeltaLake(sink.lake).maintain("t", dry_run=False)
    assert materialized(storage).anew == ""
    assert_latest(storage, {0: 60})


def test_entries_that_were_cleaned_away_make_it_anew(storage, sink):
    sink.ingest({0: (0, 20)})
    materialized(storage)
    for start in range(20, 40, 5):
        sink.ingest({0: (start, start + 5)})
    handle = DeltaTable(storage.uri("t"))
    handle.create_checkpoint()
    for number in range(handle.version()):
        Path(storage.root, "t", "_delta_log", f"{number:020d}.json").unlink()
    assert "is no longer in its log" in materialized(storage).anew
    assert_latest(storage, {0: 40})


def test_redriven_rows_bring_no_deleted_key_back(storage, sink, monkeypatch):
    sink.ingest({0: (0, 60)})
    materialized(storage)
    refused, records_of = newest.value, redrive.records_in

    def mended(record):
        return b'{"n": %d}' % record.at if refused(record) == b"bad" else refused(record)

    def mended_letters(letters):
        values = [mended(FakeRecord(0, offset)) for offset in letters["_offset"].to_pylist()]
        return replace(records_of(letters), values=pa.array(values, pa.binary()))

    monkeypatch.setattr(redrive, "records_in", mended_letters)
    assert Redrive(settings_of(storage), "t").run().passed
    assert "kgs redrive" in materialized(storage).anew
    monkeypatch.setattr(newest, "value", mended)
    assert_latest(storage, {0: 60})


def test_another_rule_makes_it_anew_and_one_that_comes_back_does(storage, sink):
    sink.ingest({0: (0, 50)})
    materialized(storage)
    assert materialized(storage, deletes="ignore").anew
    assert_latest(storage, {0: 50}, tombstones=False)
    sink.ingest({0: (50, 80)})
    assert materialized(storage, deletes="ignore").anew == ""
    assert_latest(storage, {0: 80}, tombstones=False)
    sink.ingest({0: (80, 100)})
    assert materialized(storage).anew, "what it noted before another rule's rows came is no position in those"
    assert_latest(storage, {0: 100})
    sink.ingest({0: (100, 120)})
    assert materialized(storage).anew == ""
    assert_latest(storage, {0: 120})


def test_a_merge_that_changes_no_row_is_noted(storage, sink, monkeypatch):
    """What comes behind it would wait for ever. Each file is a merge of its own here."""
    monkeypatch.setattr(latest_by_key, "MERGE_BYTES", 1)
    sink.ingest({0: (0, 20)})
    materialized(storage)
    with monkeypatch.context() as without:
        without.setattr(FakeRecord, "key", lambda _: None)
        sink.ingest({0: (20, 26)})
        sink.ingest({0: (26, 32)})
    assert materialized(storage).commits == 2
    assert materialized(storage).rows == 0, "it was noted"
    assert_latest(storage, {0: 20})


def test_a_record_of_several_rows_has_no_newest_one(storage):
    with pytest.raises(ConfigError, match="with rows: any a record has several rows"):
        settings_of(storage, LONGS | {"rows": "any"})


def test_what_it_must_not_touch_or_cannot_compare_is_refused(storage, sink):
    sink.ingest({0: (0, 20)})
    again = Sink(storage, topic_id="id2").started(1)
    with pytest.raises(UnsafeError, match="order: timestamp"):
        materialized(storage)
    again.ingest({0: (0, 30)})
    materialized(storage, order="timestamp")
    write_deltalake(storage.uri("u"), pa.table({"n": [row["n"] for row in sink.rows()]}))
    with pytest.raises(UnsafeError, match="is not a derived table of kgs"):
        materialized(storage, order="timestamp", table="u")


def with_own_columns(rows, topic):
    """A transform whose columns have names as change data capture gives them."""
    return rows.append_column("_deleted", pc.equal(rows["n"], 3)).append_column("_row", rows["n"])


@pytest.mark.parametrize("more", [{}, {"key": ["_row", "_deleted"], "deletes": "ignore"}])
def test_columns_of_a_transform_may_have_any_names(storage, more):
    hook = f"{__name__}:with_own_columns"
    sink = Sink(storage, transform_arrow=hook)
    columns = pa.schema([*sink.table.schema, ("_deleted", pa.bool_()), ("_row", pa.int64())])
    sink.table = TopicTable(DeltaLake(sink.lake), sink.spec, sink.ids, columns)
    sink.started(2)
    for start in (0, 30):
        sink.ingest({0: (start, start + 30)})
        materialized(storage, LONGS | {"transform_arrow": hook}, **more)
    rows = sink.rows("t_latest")
    assert {row["_row"]: row["_deleted"] for row in rows} == {row["n"]: row["n"] == 3 for row in rows}
    assert rows
    if not more:
        assert_latest(storage, {0: 60})


@pytest.mark.parametrize("rest", ["nothing", "data"])
def test_a_table_that_is_deleted_under_a_merge_is_made_again(storage, sink, monkeypatch, rest):
    """In a store of objects an entry could be put where the folder was: no table could be opened there any more."""
    sink.ingest({0: (0, 20)})
    materialized(storage)
    sink.ingest({0: (20, 40)})

    def deleted():
        for path in Path(storage.uri("t_latest")).rglob("*"):
            if path.is_file() and (rest == "nothing" or path.suffix == ".json"):
                path.unlink()

    before(monkeypatch, DerivedTable, "_commit", deleted)
    assert "never made" in materialized(storage).anew
    assert_latest(storage, {0: 40})


def test_what_is_left_of_a_deleted_table_is_said_with_its_cure(storage, sink):
    sink.ingest({0: (0, 20)})
    materialized(storage)
    sink.ingest({0: (20, 40)})
    materialized(storage)
    log = Path(storage.uri("t_latest"), "_delta_log")
    for path in sorted(log.iterdir())[:-1]:
        path.unlink()
    with pytest.raises(UnsafeError, match=r"is missing.*or delete the whole table: it is made anew from t$"):
        materialized(storage)
    shutil.rmtree(log.parent)
    materialized(storage)
    assert_latest(storage, {0: 40})


@pytest.mark.parametrize("where", ["_merge_new", "compact"])
def test_where_another_has_deleted_rows_all_is_made_anew(storage, sink, monkeypatch, where):
    sink.ingest({0: (0, 20)})
    materialized(storage)
    sink.ingest({0: (20, 40)})

    def foreign():
        raise ForeignVectorError("something else than kgs has deleted rows of it")

    before(monkeypatch, LatestByKeyTable if where == "_merge_new" else DerivedTable, where, foreign)
    assert "something else than kgs" in materialized(storage).anew
    assert_latest(storage, {0: 40})
