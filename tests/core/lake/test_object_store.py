"""A store of objects as a file system, with obstore's store in memory; with real servers: `test_lake_in_a_store.py`."""

import gc
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.exceptions import GenericError
from obstore.store import MemoryStore
from pyarrow.fs import FileSelector, FileSystem

from kgs_core.errors import PermanentError, TransientError, UnsafeError
from kgs_core.lake.files import object_store
from kgs_core.lake.files.object_store import RETRY_TIMEOUT, object_file_system
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.storage import Storage

NAMES = [f"{folder}{name}" for folder in ("", "t/", "t/_delta_log/", "t/p=a%3Ab/", "tt/") for name in ("a", "b é.json")]
ACTS = st.lists(
    st.tuples(st.sampled_from(["write", "write", "delete", "delete folder", "read"]), st.sampled_from(NAMES)),
    max_size=30,
)


def in_memory() -> FileSystem:
    store = MemoryStore()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(object_store, "object_store", lambda *_: store)
        return object_file_system.__wrapped__("memory:///", ())


@settings(max_examples=150, deadline=None)
@given(ACTS)
def test_it_holds_what_a_dictionary_holds(acts: list[tuple[str, str]]) -> None:
    files, wanted = in_memory(), dict[str, bytes]()
    for number, (act, name) in enumerate(acts):
        folder = name.rpartition("/")[0]
        if act == "write":
            wanted[name] = name.encode() * (number % 5)
            with files.open_output_stream(name) as file:
                file.write(wanted[name])
        elif act == "delete":
            with suppress(FileNotFoundError):
                files.delete_file(name)
            wanted.pop(name, None)
        elif act == "delete folder" and folder:
            files.delete_dir(folder)
            wanted = {n: data for n, data in wanted.items() if not n.startswith(f"{folder}/")}
        elif act == "read" and name in wanted:
            with files.open_input_file(name) as file:
                assert file.read() == wanted[name]
                file.seek(number % 7)
                assert file.read(3) == wanted[name][number % 7 : number % 7 + 3]
        assert_listed(files, wanted, folder)
        info = files.get_file_info(name)
        assert info.size == (len(wanted[name]) if name in wanted else None)


def assert_listed(files: FileSystem, wanted: Mapping[str, bytes], folder: str) -> None:
    """A folder's files with all below it, and one level of it."""
    above = f"{folder}/" if folder else ""
    below = {name.removeprefix(above): len(data) for name, data in wanted.items() if name.startswith(above)}
    whole = files.get_file_info(FileSelector(folder, recursive=True, allow_not_found=True))
    assert {info.path.removeprefix(above): info.size for info in whole} == below
    level = files.get_file_info(FileSelector(folder, allow_not_found=True))
    assert {(info.base_name, info.is_file) for info in level} == {(n.partition("/")[0], "/" not in n) for n in below}


def test_what_is_not_there_is_not_found() -> None:
    files = in_memory()
    with pytest.raises(FileNotFoundError):
        files.open_input_file("nothing")
    with pytest.raises(FileNotFoundError):
        files.get_file_info(FileSelector("nothing"))
    files.delete_dir("nothing")


@pytest.mark.parametrize(
    ("address", "options", "problem"),
    [
        ("az://c/lake", {}, "Account must be specified"),
        ("az://c/lake", {"account_name": "a", "no_such_option": "1"}, "no_such_option"),
        ("gs://b/lake", {"google_service_account_key": "{"}, "service account"),
        ("s3://b/lake", {"aws_access_key_id": "a"}, "Missing SecretAccessKey"),
        ("s3://b/lake", {"timeout": "soon"}, "soon"),
        ("s3://b/lake", {"max_retries": "few"}, "few"),
        ("s3://b/lake", {"retry_timeout": "a while"}, "a while"),
    ],
)
def test_options_without_a_meaning_are_named(address: str, options: dict[str, str], problem: str) -> None:
    with pytest.raises(PermanentError, match=problem) as raised:
        object_store.object_store(address, options)
    assert str(raised.value).startswith(f"lake {address}: ")
    assert str(raised.value).endswith(": fix lake.root or lake.storage_options")


@pytest.mark.parametrize(
    "option",
    [
        {"http1_only": "true"},
        {"read_timeout": "10s"},
        {"pool_max_idle_per_host": "5"},
        {"proxy_excludes": "example.org"},
        {"retry_timeout": "2m", "max_retries": "3"},
    ],
)
@pytest.mark.parametrize("address", ["s3://b/lake", "gs://b/lake", "abfss://c@a.dfs.core.windows.net/lake"])
def test_options_of_the_connection_are_taken(address: str, option: dict[str, str]) -> None:
    object_store.object_store(address, option)


class Sick:
    """A store that takes no file, and gives half of what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def put(self, path: str, _: bytes) -> None:
        self.asked.append(path)
        raise GenericError("error sending request")

    def head(self, _: str) -> dict[str, int]:
        return {"size": 100}

    def get_range(self, _: str, start: int, length: int) -> bytes:
        assert start >= 0
        return bytes(length // 2)


def on_sick_store() -> tuple[FileSystem, Sick]:
    sick = Sick()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(object_store, "object_store", lambda *_: sick)
        return object_file_system.__wrapped__("s3://b/lake", ()), sick


def test_a_file_that_was_not_taken_is_not_put_again_when_it_is_forgotten() -> None:
    files, sick = on_sick_store()
    with pytest.raises(OSError, match="error sending request"), files.open_output_stream("a") as file:
        file.write(b"abc")
    del file
    gc.collect()
    assert sick.asked == ["a"]


def test_a_store_that_does_not_answer_is_asked_once_for_a_file_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    files, sick = on_sick_store()
    monkeypatch.setattr(Storage, "filesystem", lambda _: files)
    with pytest.raises(TransientError, match="error sending request"):
        write_table(Storage("s3://b/lake"), "t", [pa.record_batch({"x": [1]})], pa.schema([("x", pa.int64())]))
    gc.collect()
    assert len(sick.asked) == 1


def test_half_an_answer_is_none() -> None:
    files, _ = on_sick_store()
    with files.open_input_file("a") as file, pytest.raises(OSError, match="5 bytes came where 10 were asked for"):
        file.read(10)


def test_many_files_are_looked_at_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting(Sick):
        together = threading.Barrier(8, timeout=20)

        def head(self, path: str) -> dict[str, Any]:
            self.together.wait()
            return {"path": path, "size": int(path), "last_modified": datetime.fromtimestamp(0, UTC)}

    monkeypatch.setattr(object_store, "object_store", lambda *_: Waiting())
    files = object_file_system.__wrapped__("s3://b/lake", ())
    assert [info.size for info in files.get_file_info([str(n) for n in range(8)])] == list(range(8))


@pytest.mark.parametrize(
    ("root", "option", "refused"),
    [
        ("abfss://c@one.dfs.core.windows.net/lake", {"AZURE_STORAGE_ACCOUNT_NAME": "two"}, True),
        ("abfss://c@one.dfs.core.windows.net/lake", {"account_name": "two"}, True),
        ("abfss://c@one.dfs.core.windows.net/lake", {"azure_storage_account_name": "one"}, False),
        ("az://c/lake", {"azure_storage_account_name": "two"}, False),
        ("az://c/lake", {"azure_container_name": "other"}, True),
        ("s3://b/lake", {"aws_bucket": "other"}, True),
        ("s3://b/lake", {"aws_bucket_name": "b"}, False),
        ("gs://b/lake", {"google_bucket": "other"}, True),
    ],
)
def test_an_option_may_not_name_another_place_than_the_address(
    root: str, option: dict[str, str], *, refused: bool
) -> None:
    storage = Storage(root, option)
    if not refused:
        assert storage.delta_options()["retry_timeout"] == RETRY_TIMEOUT
        return
    with pytest.raises(UnsafeError, match="remove the option"):
        storage.delta_options()
