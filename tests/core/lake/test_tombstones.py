"""Tombstones: a null value, as a row or among dead letters; there each is merged once its rows are there, and once."""

from itertools import count, product

import pytest
from deltalake import DeltaTable

from kgs_core.lake.delta.delta_lake import DeltaLake
from kgs_core.lake.delta.table_changes import AddedFile
from kgs_core.lake.derived import latest_by_key
from kgs_core.lake.derived.latest_by_key import LatestByKeyTable
from kgs_core.ports import CommitOutcome
from tests.core.lake.newest import assert_latest, materialized, value
from tests.sink import FakeRecord

pytestmark = pytest.mark.usefixtures("keyed_records")


def test_a_tombstone_above_the_position_waits_for_the_rows_before_it(storage, sink):
    """Its dead letter is committed before the rows of its batch: merged at once, it would delete nothing, for good."""
    sink.ingest({0: (0, 10)})
    materialized(storage)
    batch = sink.read({0: (10, 30)})
    assert sink.table._commit_dead_letters(batch) is CommitOutcome.COMMITTED
    materialized(storage)
    assert_latest(storage, {0: 10})
    for upto in (30, 60):  # while that partition is not read, the other's tombstones count
        sink.ingest({1: (upto - 30, upto)})
        materialized(storage)
        assert_latest(storage, {0: 10, 1: upto})
    sink.ingest({0: (10, 30)})
    materialized(storage)
    assert_latest(storage, {0: 30, 1: 60})


@pytest.mark.slow
def test_what_a_consumer_commits_between_any_two_looks_makes_no_difference(storage, sink, monkeypatch):
    """Each of the looks sees the tables some half commits later than the one before it."""

    def half_commits():
        for start in count(step=25):
            span = {0: (start, start + 25)}
            assert sink.table._commit_dead_letters(sink.read(span)) is CommitOutcome.COMMITTED
            yield
            assert sink.ingest(span) is CommitOutcome.COMMITTED
            yield

    halves, before = half_commits(), []

    def late(look):
        def looked(*given):
            for _ in range(before.pop() if before else 0):
                next(halves)
            return look(*given)

        return looked

    for where, name in ((latest_by_key, "opened_table"), (LatestByKeyTable, "_positions")):
        monkeypatch.setattr(where, name, late(getattr(where, name)))
    for schedule in product(range(3), repeat=3):
        before += schedule
        materialized(storage)
        before.clear()
        materialized(storage)
        assert_latest(storage, {0: sink.position(0)})


@pytest.mark.parametrize("anew", [True, False])
def test_what_waits_for_ever_is_not_read_again(storage, sink, monkeypatch, anew):
    """The consumer was killed between dead letters and rows, and then the topic was deleted."""
    sink.ingest({0: (0, 10)})
    if not anew:
        materialized(storage)
    assert sink.table._commit_dead_letters(sink.read({0: (10, 30)})) is CommitOutcome.COMMITTED
    sink.ingest({1: (0, 40)})
    assert materialized(storage).tombstones
    version = DeltaTable(storage.uri("t_latest")).version()
    read = []
    of = AddedFile.read
    monkeypatch.setattr(
        AddedFile,
        "read",
        lambda file, storage, table, columns: (
            (table != "t_latest" and read.append(file.path)) or of(file, storage, table, columns)
        ),
    )
    found = materialized(storage)
    assert (found.tombstones, found.commits, read) == (0, 0, [])
    assert DeltaTable(storage.uri("t_latest")).version() == version
    sink.ingest({1: (40, 60)})  # what comes beside it is read, once
    assert materialized(storage).tombstones == sum(value(FakeRecord(1, at)) is None for at in range(40, 60))
    assert len(read) == 2
    assert_latest(storage, {0: 10, 1: 60})
    DeltaLake(sink.lake).maintain("t_dead_letters", dry_run=False)
    assert materialized(storage).commits == 0
    sink.ingest({0: (10, 30)})  # it was not for ever
    assert materialized(storage).tombstones == sum(value(FakeRecord(0, at)) is None for at in range(10, 30))
    assert_latest(storage, {0: 30, 1: 60})
    assert materialized(storage).tombstones == 0
