"""Upkeep of tables: what it removes, what it leaves alone, and that two do not run at once."""

import os
import threading
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import PermanentError, TransientError
from kgs_core.lake.delta.delta_maintenance import RETENTION_H, maintain_table
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.maintenance import maintenance_lock
from kgs_core.ports import CommitOutcome
from tests.sink import Sink

HOUR = 3600


@pytest.fixture
def sink(storage):
    found = Sink(storage, checkpoint_interval=3).started(1)
    for start in range(0, 40, 4):
        found.ingest({0: (start, start + 4)})
    return found


def data_files(storage):
    return {path.name for path in Path(storage.uri("t")).glob("*.parquet")}


def make_older(storage, name, hours):
    path = Path(storage.uri("t"), name)
    then = path.stat().st_mtime - hours * HOUR
    os.utime(path, (then, then))


def test_table_that_is_not_there_is_none(storage):
    assert maintain_table(storage, "t") is None


def test_small_files_become_one_and_the_rows_stay(storage, sink):
    upkeep = maintain_table(storage, "t")
    assert (upkeep.table, upkeep.files, upkeep.removed, upkeep.problem) == ("t", (10, 1), 0, None)
    assert upkeep.bytes[0] > upkeep.bytes[1] > 0
    assert sink.assert_exact(1) == {0: 40}
    assert sink.ingest({0: (40, 44)}) is CommitOutcome.COMMITTED


def test_file_that_was_never_committed_goes_when_it_is_old_and_stays_while_it_is_young(storage, sink):
    old, young = sink.read({0: (40, 44)}).files[0], sink.read({0: (40, 48)}).files[0]
    make_older(storage, old.path, RETENTION_H + 1)
    make_older(storage, young.path, RETENTION_H - 1)
    upkeep = maintain_table(storage, "t")
    assert (upkeep.removed, upkeep.removed_bytes) == (1, old.size)
    assert old.path not in data_files(storage)
    assert young.path in data_files(storage)


@pytest.mark.parametrize(
    ("own", "hours"), [("2 days", 48), ("30 days", 720), ("24 hours", 24), ("23 hours", RETENTION_H)]
)
def test_retention_of_the_table_itself_counts_from_a_day_on(storage, sink, own, hours):
    """With less, a batch could lose files that are in no version until its commit."""
    DeltaTable(storage.uri("t")).alter.set_table_properties({"delta.deletedFileRetentionDuration": f"interval {own}"})
    orphan = sink.read({0: (40, 44)}).files[0]
    make_older(storage, orphan.path, hours - 1)
    assert maintain_table(storage, "t").removed == 0
    make_older(storage, orphan.path, 2)
    assert maintain_table(storage, "t").removed == 1


def test_dry_run_changes_nothing(storage, sink):
    orphan = sink.read({0: (40, 44)}).files[0]
    make_older(storage, orphan.path, RETENTION_H + 1)
    version = DeltaTable(storage.uri("t")).version()
    upkeep = maintain_table(storage, "t", dry_run=True)
    assert (upkeep.files, upkeep.removed, upkeep.removed_bytes) == ((10, 10), 1, orphan.size)
    assert DeltaTable(storage.uri("t")).version() == version
    assert orphan.path in data_files(storage)


def test_table_with_another_inside_is_compacted_and_not_vacuumed(storage, sink):
    """What lies in subfolders is not of kgs, which writes none: vacuum would take it for orphans."""
    inner = Path(storage.uri("t"), "inner", "theirs.parquet")
    inner.parent.mkdir()
    inner.write_bytes(b"x")
    os.utime(inner, (0, 0))
    upkeep = maintain_table(storage, "t")
    assert upkeep.files == (10, 1)
    assert "inner/theirs.parquet" in upkeep.problem
    assert inner.exists()


def test_consumers_commit_all_the_while(storage, sink):
    stop = threading.Event()
    upkeeps = []

    def maintain():
        while not stop.is_set():
            upkeeps.append(maintain_table(storage, "t"))

    thread = threading.Thread(target=maintain)
    thread.start()
    end = 40
    try:
        while end < 240 or len(upkeeps) < 2:
            assert sink.ingest({0: (end, end + 4)}) is CommitOutcome.COMMITTED
            end += 4
    finally:
        stop.set()
        thread.join()
    # a compaction that loses the race for a number fifteen times gives up: nothing pauses between these commits
    assert [u.problem for u in upkeeps if u.problem and "compaction: Failed to commit" not in u.problem] == []
    assert sink.assert_exact(1) == {0: end}


def test_two_maintenances_do_not_run_at_once(storage, sink):
    again = pytest.raises(TransientError, match="another maintenance is running")
    lake = open_lake(LakeSettings(root=storage.root))
    before = lake.folders("")
    with maintenance_lock(storage), again, maintenance_lock(storage):
        pass
    assert lake.folders("") == before, "the file of the lock, which stays, is no table"
    with maintenance_lock(storage):
        pass


def test_lock_in_a_lake_that_is_not_there_is_a_plain_error(tmp_path):
    with pytest.raises(PermanentError, match="No such file"), maintenance_lock(Storage(str(tmp_path / "none"))):
        pass
