"""A store of objects as a file system, with obstore's store in memory; with real servers: `test_lake_in_a_store.py`."""

from collections.abc import Mapping
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore
from pyarrow.fs import FileSelector, FileSystem

from kgs_core.errors import PermanentError
from kgs_core.lake.files import object_store
from kgs_core.lake.files.object_store import object_file_system

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


def test_parquet_is_written_and_read_in_ranges() -> None:
    files, rows = in_memory(), pa.table({"x": list(range(50_000)), "y": [f"text {n}" for n in range(50_000)]})
    with files.open_output_stream("t/a.parquet") as sink, pq.ParquetWriter(sink, rows.schema) as writer:
        for start in range(0, 50_000, 10_000):
            writer.write_table(rows.slice(start, 10_000))
    with pq.ParquetFile("t/a.parquet", filesystem=files) as found:
        assert found.read() == rows
        assert found.read_row_group(3, columns=["x"]) == rows.slice(30_000, 10_000).select(["x"])


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
    ],
)
def test_options_without_a_meaning_are_named(address: str, options: dict[str, str], problem: str) -> None:
    with pytest.raises(PermanentError, match=problem) as raised:
        object_store.object_store(address, options)
    assert str(raised.value).startswith(f"lake {address}: ")
    assert str(raised.value).endswith(": fix lake.root or lake.storage_options")
