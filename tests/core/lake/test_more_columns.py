"""A topic's table that is given columns while others commit to it; real tables in a folder, and their readers."""

import warnings

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder

from kgs_core.lake.delta.combined_commit import CombinedCommits, _OpenCommit
from kgs_core.lake.delta.evolution import add_columns
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.combining import CommitIntent
from kgs_core.lake.topics.factory import open_lake
from kgs_core.ports import CommitOutcome
from tests.one_column import LAKE, SCHEMA, file_of, table_at, values_in
from tests.sink import Sink, bad

NEW = {"n": "long", "partition_too": "int"}


def sink(storage, schema, evolve="add_columns", **more):
    """A consumer whose rule has this schema, with its table opened."""
    made = Sink(storage, schema=schema, evolve=evolve, **more)
    made.table.open()
    return made


def columns_of(storage):
    return [f.name for f in DeltaTable(storage.uri("t")).schema().fields if not f.name.startswith("_")]


def test_a_column_that_a_rule_has_gained_is_added_and_a_consumer_of_the_old_rule_goes_on(storage):
    old = Sink(storage).started(2)
    under_way = old.read({0: (0, 4)})
    new = sink(storage, NEW)
    assert columns_of(storage) == ["n", "partition_too"]
    assert old.table.commit(under_way) is CommitOutcome.COMMITTED, "with the file that it had written"
    assert new.ingest({0: (4, 8), 1: (0, 3)}) is CommitOutcome.COMMITTED
    assert old.ingest({1: (3, 9)}) is CommitOutcome.COMMITTED
    assert old.assert_exact(2) == {0: 8, 1: 9}


def test_of_columns_removed_and_in_another_order_rows_are_null_or_found_by_name(storage):
    sink(storage, {"gone": "string", "n": "long"}).table.fix_start({0: 0})
    now = sink(storage, {"more": "date", "n": "long"})
    now.ingest({0: (0, 3)})
    assert columns_of(storage) == ["gone", "n", "more"]
    rows = DeltaTable(storage.uri("t")).to_pyarrow_table(columns=["gone", "n", "more"]).to_pylist()
    assert rows == [{"gone": None, "n": n, "more": None} for n in range(3)]


def test_columns_are_made_wide_by_widen_and_one_that_is_narrow_stays_so_with_a_word(storage, caplog):
    sink(storage, {"n": "int", "f": "float"}, "widen")
    kinds = {f.name: str(f.type) for f in pa.schema(DeltaTable(storage.uri("t")).schema())}
    assert (kinds["n"], kinds["f"]) == ("int64", "double")
    other = Storage(str(storage.root) + "/other")
    sink(other, {"n": "int"}, "none").table.fix_start({0: 0})
    narrow = sink(other, {"n": "int", "m": "int"}, "widen")
    assert narrow.table.columns == pa.schema([("n", pa.int32()), ("m", pa.int64())])
    assert "column=n stays int32, a larger value is a bad record" in caplog.text
    assert narrow.ingest({0: (0, 3)}) is CommitOutcome.COMMITTED


def all_rows(storage):
    """By deltalake's readers: pyarrow's and DataFusion's."""
    table = DeltaTable(storage.uri("t"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_pyarrow = table.to_pyarrow_table()
    names = ["_partition", "_offset", *[name for name in by_pyarrow.column_names if not name.startswith("_")]]
    by_pyarrow = by_pyarrow.select(names).sort_by([("_partition", "ascending"), ("_offset", "ascending")]).to_pylist()
    query = f"select {', '.join(names)} from t order by _partition, _offset"
    assert pa.table(QueryBuilder().register("t", table).execute(query).read_all()).to_pylist() == by_pyarrow
    return by_pyarrow


@pytest.mark.parametrize("is_nested", [False, True])
def test_readers_find_the_same_rows_before_and_after_maintenance(storage, is_nested):
    """Compaction after schemas were merged failed once in deltalake (delta-rs#2347)."""
    old = Sink(storage).started(1)
    old.ingest({0: (0, 4)})
    if is_nested:
        lake = open_lake(old.lake)
        for struct in ([("a", pa.int64())], [("a", pa.int64()), ("b", pa.string())]):
            lake.columns(
                "t", old.table.schema, pa.schema([("s", pa.struct(struct)), ("l", pa.list_(pa.struct(struct)))])
            )
            old.ingest({0: (old.position(0), old.position(0) + 4)})
    else:
        sink(storage, NEW).ingest({0: (4, 8)})
        old.ingest({0: (8, 12)})
    before = all_rows(storage)
    assert len(before) == sum(not bad(o) for o in range(12))
    upkeep = open_lake(old.lake).maintain("t", dry_run=False)
    assert upkeep.problem is None
    assert upkeep.files[1] < upkeep.files[0]
    assert all_rows(storage) == before
    old.ingest({0: (12, 16)})
    assert [row["n"] for row in all_rows(storage)] == [o for o in range(16) if not bad(o)]


def test_null_is_found_where_a_file_lacks_the_column_once_it_is_compacted(storage):
    """Before that, deltalake's pyarrow reader passes over such files, and only for this question: docs/formats.md."""
    old = Sink(storage).started(1)
    old.ingest({0: (0, 4)})
    sink(storage, NEW).ingest({0: (4, 8)})
    open_lake(old.lake).maintain("t", dry_run=False)
    dataset = DeltaTable(storage.uri("t")).to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("partition_too").is_null()).num_rows == sum(not bad(o) for o in range(8))


def test_intent_from_before_a_new_column_is_left_to_its_writer_who_leaves_another(storage):
    """What was checked then says nothing of the table now; and no writer waits for an entry that nobody makes."""
    table = table_at(storage, commits="combined")
    batch = CommitIntent({"b": None}, {"b": 1}, [file_of(storage, 1)])
    writer, waiting = CombinedCommits(TableLog(storage, "t", SCHEMA, LAKE)), _OpenCommit(batch, is_asked=False)
    writer._turns.is_due = lambda now: False  # another one waits for less
    assert writer._attempt(waiting) is None
    before = waiting.name
    add_columns(TableLog(storage, "t", pa.schema([]), LAKE), [pa.field("y", pa.string())])
    assert table.commit({"a": None}, {"a": 1}, [file_of(storage, 2)]) is CommitOutcome.COMMITTED
    assert values_in(storage) == [2]
    assert writer._attempt(waiting) is None
    assert waiting.name != before
    assert table.commit({"a": 1}, {"a": 2}, [file_of(storage, 3)]) is CommitOutcome.COMMITTED
    assert values_in(storage) == [1, 2, 3]
    assert writer._attempt(waiting) is CommitOutcome.COMMITTED
