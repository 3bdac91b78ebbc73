"""Tables, files and logs that are not what they were: what is refused, noticed or survived."""

import multiprocessing
import os
import shutil

import pytest
from deltalake import DeltaTable

from kgs_core.errors import TransientError, UnsafeError
from kgs_core.lake.delta.combined_commit import CombinedCommits
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.files.storage import Storage
from kgs_core.ports import CommitOutcome
from tests.meanwhile import at_once
from tests.one_column import file_of, fill, table_at, values_in


@pytest.mark.parametrize("damage", [os.remove, lambda path: os.truncate(path, 1)], ids=["gone", "cut"])
def test_file_that_is_not_what_was_written_moves_no_position(storage, table, damage):
    file = file_of(storage, 1)
    damage(storage.path("t", file.path))
    with pytest.raises(TransientError, match="is gone or has another size"):
        table.commit({"a": None}, {"a": 1}, [file])
    assert table.versions(["a"]) == {"a": None}


def test_file_older_than_half_a_day_is_not_committed(storage, table):
    """Vacuum may take it at any moment; a process that was stopped for days has such files."""
    file = file_of(storage, 1)
    path = storage.path("t", file.path)
    written = os.stat(path).st_mtime
    os.utime(path, (written - 11 * 3600,) * 2)
    assert table.commit({"a": None}, {"a": 1}, [file]) is CommitOutcome.COMMITTED
    os.utime(path, (written - 13 * 3600,) * 2)
    with pytest.raises(TransientError, match="older than half a day"):
        table.commit({"a": 1}, {"a": 2}, [file])
    assert table.versions(["a"]) == {"a": 1}


def test_property_changed_while_running_is_noticed(storage, table):
    table.commit({"a": None}, {"a": 1}, ())
    DeltaTable(storage.uri("t")).alter.set_table_properties(
        {"delta.setTransactionRetentionDuration": "interval 1 hours"}
    )
    with pytest.raises(UnsafeError, match="setTransactionRetentionDuration"):
        table.commit({"a": 1}, {"a": 2}, [file_of(storage, 1)])
    with pytest.raises(UnsafeError, match="setTransactionRetentionDuration"):
        table.versions(["a"])


@pytest.mark.parametrize("commit", ["direct", "combined"])
def test_file_that_vacuum_took_between_check_and_write_is_noticed(storage, commit):
    """A machine that was halted in between: vacuum has taken the number, too, and no clock need tell of it."""

    class Halted(TableLog):
        def write(self, state, batches):
            if DeltaTable(self.uri).version() < 2:
                for file in batches[0].files:
                    os.remove(storage.path("t", file.path))
                handle = DeltaTable(self.uri)
                handle.create_write_transaction([], "append", handle.schema())
            super().write(state, batches)

    table = table_at(storage, Halted, commits=commit)
    table_at(storage).commit({"b": None}, {"b": 1}, ())
    with pytest.raises(TransientError, match="is gone"):
        table.commit({"a": None}, {"a": 2}, [file_of(storage, 1)])
    assert table.versions(["a"]) == {"a": None}


def test_log_put_back_while_a_batch_waits_gets_no_hole(storage):
    class PutBack(CombinedCommits):
        def _ask(self, *args):
            super()._ask(*args)
            for version in (2, 3, 4):
                os.remove(storage.path("t", f"_delta_log/{version:020d}.json"))

    table = table_at(storage, commits="combined")
    for n in range(4):
        table_at(storage).commit({"b": n or None}, {"b": n + 1}, ())
    table._combined = PutBack(table._log)
    assert table.commit({"a": None}, {"a": 2}, [file_of(storage, 1)]) is CommitOutcome.COMMITTED
    assert DeltaTable(storage.uri("t")).version() == 2
    assert table_at(storage).versions(["a", "b"]) == {"a": 2, "b": 1}


def test_restored_table_keeps_its_positions_so_nothing_is_doubled(storage, table):
    """The rows that an operator took away with RESTORE are for the audit to miss; they are not read again."""
    fill(storage, table, 4)
    DeltaTable(storage.uri("t")).restore(2)
    assert table.versions(["a"]) == {"a": 4}
    assert table.commit({"a": 4}, {"a": 5}, [file_of(storage, 4)]) is CommitOutcome.COMMITTED
    assert values_in(storage) == [0, 1, 4]


def test_deleted_table_is_an_error_and_is_not_written_to(storage, table):
    fill(storage, table, 3)
    file = file_of(storage, 3)
    shutil.rmtree(storage.path("t", "_delta_log"))
    with pytest.raises(UnsafeError, match="moved or deleted"):
        table.versions(["a"])
    with pytest.raises(TransientError):
        table.commit({"a": 3}, {"a": 4}, [file])
    assert not os.path.exists(storage.path("t", "_delta_log"))


def test_table_that_cannot_be_made_is_not_reported_as_moved(tmp_path):
    """A file where the lake should be; a folder without write rights fails alike, but not for root."""
    (tmp_path / "lake").write_text("")
    with pytest.raises(UnsafeError) as caught:
        table_at(Storage(str(tmp_path / "lake")))
    assert str(caught.value).startswith("table t: not there, and not made: ")
    assert f"see that this user may write to {tmp_path}/lake" in str(caught.value)


@pytest.mark.parametrize("commits", [0, 9])
def test_table_that_was_made_again_under_the_handle_starts_without_positions(storage, table, commits):
    fill(storage, table, 4)
    shutil.rmtree(storage.path("t"))
    other = table_at(storage)
    for n in range(commits):
        other.commit({"b": n or None}, {"b": n + 1}, ())
    assert table.commit({"a": 4}, {"a": 5}, [file_of(storage, 4)]) is CommitOutcome.REFUSED
    assert table.versions(["a"]) == {"a": None}


def _create_and_commit(root, name, barrier):
    storage = Storage(root)
    barrier.wait()
    table = table_at(storage, name="new")
    outcome = table.commit({name: None}, {name: 1}, [file_of(storage, 1, name="new")])
    os._exit(0 if outcome is CommitOutcome.COMMITTED else 1)


@pytest.mark.slow
def test_two_processes_that_make_the_table_at_once_both_go_on(storage):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    makers = [context.Process(target=_create_and_commit, args=(storage.root, name, barrier)) for name in "abc"]
    at_once(makers, 60)
    assert [maker.exitcode for maker in makers] == [0, 0, 0]
    assert table_at(storage, name="new").versions(["a", "b", "c"]) == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("folder", ["a b", "ü", "a#b", "a?b", "a+b", "a&b=c"])
def test_lake_may_lie_under_any_usual_path(tmp_path, folder):
    storage = Storage(str(tmp_path / folder))
    table = table_at(storage)
    assert table.commit({"a": None}, {"a": 1}, [file_of(storage, 1)]) is CommitOutcome.COMMITTED
    assert os.path.isdir(tmp_path / folder / "t" / "_delta_log")
    assert values_in(storage) == [1]


def test_path_that_deltalake_would_read_as_another_is_refused(tmp_path):
    with pytest.raises(UnsafeError, match="must not have '%' in it"):
        table_at(Storage(str(tmp_path / "a%41")))


def test_link_out_of_the_lake_is_refused(tmp_path, storage):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "t").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeError, match="leads out of the lake's root"):
        table_at(storage)
