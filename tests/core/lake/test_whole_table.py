"""A table that is fine is never refused as torn, whatever others do to it at that moment."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from kgs_core.errors import TransientError
from kgs_core.lake.delta import table_log, whole_table
from kgs_core.lake.delta.delta_lake import DeltaLake
from kgs_core.lake.delta.delta_log import LogState, load_transactions, read_state
from kgs_core.lake.delta.log_store import LogStore
from kgs_core.lake.delta.whole_table import check_files, opened_table
from kgs_core.lake.files.storage import Storage
from kgs_core.ports import CommitOutcome
from tests.one_column import LAKE, batch_of, file_of, table_at, values_in


def overwrite_and_vacuum(storage: Storage, *values: int) -> None:
    write_deltalake(storage.uri("t"), [batch_of(*values)], mode="overwrite")
    DeltaTable(storage.uri("t")).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)


@pytest.fixture
def filled(storage: Storage) -> Storage:
    DeltaTable.create(storage.uri("t"), schema=batch_of(0).schema)
    table_at(storage).commit({"a": None}, {"a": 1}, [file_of(storage, 0)])
    return storage


def test_files_that_another_one_removes_meanwhile(filled: Storage) -> None:
    handle = DeltaTable(filled.uri("t"))
    overwrite_and_vacuum(filled, 1)
    check_files(filled, "t", handle)


def test_files_of_another_user(filled: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "permission denied")

    monkeypatch.setattr(whole_table, "open", refused, raising=False)
    assert opened_table(filled, "t") is not None


def test_files_that_cannot_be_looked_at_now(filled: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(whole_table, "open", refused, raising=False)
    with pytest.raises(TransientError, match="too many open files"):
        table_at(filled)
    with pytest.raises(TransientError, match="too many open files"):
        DeltaLake(LAKE.model_copy(update={"root": filled.root})).pin("t")


def test_a_log_that_changes_all_the_time(filled: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def later(log: LogStore) -> LogState | None:
        state = read_state(log)
        return state and replace(state, changed=state.version + 1)

    monkeypatch.setattr(table_log, "read_state", later)
    with pytest.raises(TransientError, match="its log changed while it was read"):
        table_at(filled)


def test_commit_behind_what_others_wrote_and_vacuumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(str(tmp_path), fsync=True)
    DeltaTable.create(storage.uri("t"), schema=batch_of(0).schema)
    table = table_at(storage)
    overwrite_and_vacuum(storage, 1)
    overwrite_and_vacuum(storage, 2)
    assert table.commit({"a": None}, {"a": 1}, [file_of(storage, 3)]) is CommitOutcome.COMMITTED
    assert values_in(storage) == [2, 3]
    assert load_transactions(storage, "t") == {"a": 1}


V2 = "3f1a2b4c-0000-4000-8000-123456789abc"


@pytest.mark.parametrize(
    "names",
    [(V2,), (V2, V2.replace("3", "4")), ("0000000001.0000000001",), (None, "0000000001.0000000001"), (None, V2)],
)
def test_checkpoints_that_others_name_otherwise(filled: Storage, names: tuple[str | None, ...]) -> None:
    DeltaTable(filled.uri("t")).create_checkpoint()
    made = next(Path(filled.path("t", "_delta_log")).glob("*.checkpoint.parquet"))
    for name in names:
        if name is not None:
            made.with_name(made.name.replace(".parquet", f".{name}.parquet")).write_bytes(made.read_bytes())
    if None not in names:
        made.unlink()
    assert load_transactions(filled, "t") == {"a": 1}


def test_a_root_in_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(path: str | Path, *how: int) -> int:
        if Path(path) == tmp_path:
            raise PermissionError(errno.EACCES, "permission denied")
        return really(path, *how)

    really = os.open
    monkeypatch.setattr(os, "open", opened)
    storage = Storage(str(tmp_path / "lake"), fsync=True)
    assert table_at(storage).commit({"a": None}, {"a": 1}, [file_of(storage, 0)]) is CommitOutcome.COMMITTED
