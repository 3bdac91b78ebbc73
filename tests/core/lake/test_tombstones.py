"""Tombstones: a null value, as a row or among dead letters; there each is merged once its rows are there, and once."""

from functools import partialmethod
from itertools import count, pairwise, product

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.config import Settings, resolve_tables
from kgs_core.lake.delta.delta_lake import DeltaLake
from kgs_core.lake.delta.table_changes import AddedFile
from kgs_core.lake.derived.latest_by_key import LatestByKeyTable
from kgs_core.lake.files.storage import Storage
from kgs_core.ports import CommitOutcome
from tests.core.lake.test_latest_by_key import assert_latest, key, materialized, value
from tests.sink import FakeRecord, Sink


@pytest.fixture(autouse=True)
def _records(monkeypatch):
    monkeypatch.setattr(FakeRecord, "key", key)
    monkeypatch.setattr(FakeRecord, "value", value)


@pytest.fixture
def storage(tmp_path):
    return Storage(str(tmp_path))


@pytest.fixture
def sink(storage):
    return Sink(storage).started(2)


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


def test_the_first_one_beside_a_killed_batch_comes_right_too(storage, sink):
    sink.ingest({0: (0, 10)})
    assert sink.table._commit_dead_letters(sink.read({0: (10, 30)})) is CommitOutcome.COMMITTED
    materialized(storage)
    assert_latest(storage, {0: 10})
    sink.ingest({0: (10, 40)})
    materialized(storage)
    assert_latest(storage, {0: 40})


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
    looks = [(name, getattr(LatestByKeyTable, name)) for name in ("_opened", "_positions")]

    def late(table, look, *given):
        for _ in range(before.pop() if before else 0):
            next(halves)
        return look(table, *given)

    for name, look in looks:
        monkeypatch.setattr(LatestByKeyTable, name, partialmethod(late, look))
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
    monkeypatch.setattr(AddedFile, "read", lambda file, *given: read.append(file.path) or of(file, *given))
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


GOOD = {"raw": (b'{"n": 1}', b"n", b"\xff"), "string": (b'{"n": 1}', b"n"), "json": (b'{"n": 1}',)}
FIELDS = {"raw": {}, "string": {}, "json": {"n": "long"}}
KEYS = {"key_format": "json", "key_schema": {"k": "long"}}
RECORDS = st.lists(
    st.tuples(
        st.sampled_from([None, b'{"k": 1}', b'{"k": 2}', b"bad"]),
        st.sampled_from([None, b'{"n": 1}', b"n", b"\xff"]),
        st.sampled_from(["", "", "header", "time"]),
    ),
    min_size=1,
    max_size=12,
)


def kept(records, name, rule):
    """Key -> offset, by a loop over all records in order."""
    state = {}
    for at, (k, v, fault) in enumerate(records):
        if v is None:
            if rule["latest_by_key"]["tombstones"] == "delete":
                state.pop(k, None)
        elif k is not None and v in GOOD[name] and not fault and (k != b"bad" or "key_format" not in rule):
            state[k] = at
    return state


def headers(record, records):
    if records[record.at][2] == "header":
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "as the client does it")


@pytest.mark.slow
@settings(max_examples=40)
@given(
    records=RECORDS,
    name=st.sampled_from([*GOOD]),
    how=st.sampled_from(["delete", "ignore"]),
    keys=st.sampled_from([{}, KEYS]),
    cuts=st.sets(st.integers(1, 11)),
)
def test_a_null_value_is_a_tombstone_whatever_the_format_and_other_faults(
    tmp_path_factory, records, name, how, keys, cuts
):
    rule = {"format": name, "schema": FIELDS[name], **keys, "latest_by_key": {"table": "t_latest", "tombstones": how}}
    root = str(tmp_path_factory.mktemp("lake"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeRecord, "key", lambda record: records[record.at][0])
        patch.setattr(FakeRecord, "value", lambda record: records[record.at][1])
        patch.setattr(FakeRecord, "timestamp", lambda record: (1, 2**60 if records[record.at][2] == "time" else 1))
        patch.setattr(FakeRecord, "headers", lambda record: headers(record, records))
        patch.setattr(FakeRecord, "set_headers", lambda *_: None)
        sink = Sink(Storage(root), **rule).started(1)
        given = {"group": "g", "kafka": {"bootstrap_servers": "x:9"}, "lake": {"root": root}}
        settings = Settings.model_validate(given | {"topics": [{"topic": "t", "table": "t", **rule}]})
        latest = LatestByKeyTable(settings, resolve_tables(settings, ["t"])["t"])
        ends = [0, *sorted(cut for cut in cuts if cut < len(records)), len(records)]
        for start, end in pairwise(ends):
            sink.ingest({0: (start, end)})
            latest.materialize()
        found = [(row["_key"], row["_offset"]) for row in sink.rows("t_latest")]
        assert sorted(found) == sorted(kept(records, name, rule).items())
