"""What the audit says of tables of newest rows, the lag of those that wait, and the consumer's thread that ends it."""

import shutil
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from kgs_core.config import resolve_tables
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.derived import latest_by_key, proof, upkeep
from kgs_core.lake.derived.upkeep import NewestRowsUpkeep, newest_rows_lags
from kgs_core.lake.files.ended_rows import note_ended
from kgs_core.lake.files.places import PartitionKey
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import TopicId
from tests.core.lake.newest import assert_latest, materialized, proven, settings_of
from tests.kgs_yaml import LONGS, kgs_yaml
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("keyed_records")


def missing(table):
    table.delete("_offset = 31")


def extra(table):
    rows = table.to_pyarrow_table(filters=[("_offset", "=", 31)])
    write_deltalake(table, rows.set_column(rows.column_names.index("_key"), "_key", pa.array([b"x"])), mode="append")


def doubled(table):
    write_deltalake(table, table.to_pyarrow_table(filters=[("_offset", "=", 31)]), mode="append")


def differing(table):
    table.update({"n": "7"}, predicate="_offset = 31")


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(
    ("wrong", "counts"),
    [(missing, (1, 0, 0)), (extra, (0, 1, 0)), (doubled, (0, 1, 0)), (differing, (0, 0, 1))],
)
def test_what_is_wrong_is_counted(storage, sink, monkeypatch, wrong, counts, parts):
    sink.ingest({0: (0, 32)})
    materialized(storage)
    monkeypatch.setattr(proof, "PART_BYTES", 10**9 if parts == 1 else 2000)
    assert proven(storage).ok
    wrong(DeltaTable(storage.uri("t_latest")))
    found = proven(storage)
    assert (found.missing, found.extra, found.differing) == counts
    assert not audit_lake(settings_of(storage), with_log=False).ok


def test_what_came_since_and_what_was_never_made_is_no_fault_and_no_proof(storage, sink):
    assert proven(storage).version is None
    sink.ingest({0: (0, 20)})
    assert (proven(storage).ok, proven(storage).version) == (True, None)
    materialized(storage)
    sink.ingest({0: (20, 40)})
    assert proven(storage).ok
    assert "run kgs materialize" in proven(storage, order="timestamp").problem
    DeltaTable(storage.uri("t")).optimize.compact()
    open_lake(settings_of(storage).lake).vacuum_replaced("t")
    assert "may be cleaned away: run kgs materialize" in proven(storage).problem
    materialized(storage)
    assert proven(storage).ok


def test_merges_beside_an_audit_are_no_finding(storage, sink, monkeypatch):
    sink.ingest({0: (0, 20)})
    materialized(storage)
    opened, times = proof.DeltaTable, iter(range(2))

    def merged_first(*given, **options):
        if (n := next(times, None)) is not None:
            sink.ingest({0: (20 + n * 10, 30 + n * 10)})
            materialized(storage)
        return opened(*given, **options)

    monkeypatch.setattr(proof, "DeltaTable", merged_first)
    found = proven(storage)
    assert (found.ok, found.problem, found.version) == (True, "", DeltaTable(storage.uri("t")).version())


def lag_of(storage, **rule):
    settings, problems = settings_of(storage, **rule), []
    [(lag_s, most_s)] = newest_rows_lags(settings, resolve_tables(settings, ["t"]).values(), problems).values()
    assert (most_s, problems) == (30, [])
    return lag_s


def test_the_lag_is_the_age_of_the_oldest_rows_that_wait(storage, sink, monkeypatch):
    assert lag_of(storage) == 0
    sink.ingest({0: (0, 20)})
    assert lag_of(storage) > 0, "it was never made: all waits"
    materialized(storage)
    assert lag_of(storage, order="timestamp") > 0, "by this rule"
    assert lag_of(storage) == 0
    sink.ingest({0: (20, 40)})
    oldest = DeltaTable(storage.uri("t")).history(1)[0]["timestamp"] / 1000
    sink.ingest({0: (40, 60)})
    DeltaTable(storage.uri("t")).optimize.compact()
    monkeypatch.setattr(upkeep.time, "time", lambda: oldest + 100)
    assert lag_of(storage) == pytest.approx(100, abs=1)
    materialized(storage)
    assert lag_of(storage) == 0


def test_a_consumer_keeps_what_it_owns_up_to_date_and_looks_once_more(storage, sink, monkeypatch, caplog):
    settings, looked = settings_of(storage, max_lag_s=1), []
    owned = list(resolve_tables(settings, ["t"]).values())
    sink.ingest({0: (0, 20)})

    def materialize(table):
        looked.append(table)
        if len(looked) == 1:
            raise BaseException("a panic of polars or deltalake")  # noqa: TRY002 - theirs is none else
        return of(table)

    of = latest_by_key.LatestByKeyTable.materialize
    monkeypatch.setattr(latest_by_key.LatestByKeyTable, "materialize", materialize)
    with NewestRowsUpkeep(settings, lambda: owned).running():
        wait_until(lambda: len(looked) > 1 and lag_of(storage) == 0, 20, "it is up to date")
        sink.ingest({0: (20, 40)})
    assert_latest(storage, {0: 40})
    sink.ingest({0: (40, 60)})
    (table,) = {spec.latest_table for spec in owned}
    assert f"table={table} newest rows are not up to date: a panic" in caplog.text
    keeper = NewestRowsUpkeep(settings, lambda: owned)
    keeper.look()
    sink.ingest({0: (60, 80)})
    owned.clear()
    keeper.look()  # what it does not own any more, once
    assert_latest(storage, {0: 80})
    sink.ingest({0: (80, 90)})
    keeper.look()
    assert_latest(storage, {0: 80})


def test_a_table_without_news_is_not_opened_and_one_that_somebody_deletes_is_made_again(storage, sink, monkeypatch):
    settings, looked = settings_of(storage), []
    owned = list(resolve_tables(settings, ["t"]).values())
    of = latest_by_key.LatestByKeyTable.materialize
    monkeypatch.setattr(latest_by_key.LatestByKeyTable, "materialize", lambda table: (looked.append(0), of(table)))
    keeper = NewestRowsUpkeep(settings, lambda: owned)
    sink.ingest({0: (0, 20)})
    for _ in range(9):
        keeper.look()
    assert len(looked) == 2, "once for the rows, and once for its own commit, behind which more may be to do"
    note_ended(storage, "t", "erase", {PartitionKey(TopicId("id1"), 0): np.array([999])})
    keeper.look()
    assert len(looked) == 3, "an erasure may be of a record whose row is in this table alone"
    shutil.rmtree(storage.uri("t_latest"))
    keeper.look()
    assert_latest(storage, {0: 20})
    sink.ingest({0: (20, 30)})
    monkeypatch.setattr(latest_by_key.LatestByKeyTable, "materialize", lambda _: 1 / 0)
    keeper.look()
    monkeypatch.setattr(latest_by_key.LatestByKeyTable, "materialize", of)
    keeper.look()
    assert_latest(storage, {0: 30})


def test_what_fails_is_tried_less_and_less_often_and_holds_up_no_other_table(storage, monkeypatch):
    rules = [
        {"topic": t, "table": t, **LONGS, "newest_rows": {"table": f"{t}_latest", "max_lag_s": lag_s}}
        for t, lag_s in (("a", 3), ("b", 3), ("c", 300))
    ]
    settings, looked, now = kgs_yaml(storage.root, *rules), [], [0.0]

    def materialize(table):
        looked.append(table._spec.table)
        if looked[-1] == "a":
            raise OSError("the store is away")

    monkeypatch.setattr(latest_by_key.LatestByKeyTable, "materialize", materialize)
    monkeypatch.setattr(upkeep, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(NewestRowsUpkeep, "_seen", lambda *_: ({}, (object(),)))  # always news
    keeper = NewestRowsUpkeep(settings, resolve_tables(settings, "abc").values)
    for _ in range(1000):
        keeper.look(only_due=True)
        now[0] += 1
    assert Counter(looked) == {"a": 10, "b": 1000, "c": 10}
