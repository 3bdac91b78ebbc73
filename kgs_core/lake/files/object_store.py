"""Stores of objects (S3, Azure Blob Storage, Google Cloud Storage) by obstore, the Rust library inside deltalake.

One client for all that is written and read beside deltalake itself: log entries by conditional put, listings from a
name on, Parquet files. So a user's options and credentials mean the same everywhere.
"""

import functools
import io
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, NoReturn

from pyarrow import PythonFile
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileSystemHandler, FileType, PyFileSystem

from kgs_core.errors import PermanentError, one_line

TIMEOUT_S = 30.0
RETRY_TIMEOUT = "30s"
"""No request is repeated later: a store that hangs is known after one timeout. A batch makes many requests, and must be
given up before `consumer.batch_timeout_s`; whoever gave it up reads it again."""
_OF_THE_CONNECTION = {
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type", "http1_only",
    "http2_keep_alive_interval", "http2_keep_alive_timeout", "http2_keep_alive_while_idle", "http2_max_frame_size",
    "http2_only", "pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes", "proxy_url",
    "randomize_addresses", "read_timeout", "root_certificate", "timeout", "user_agent",
}  # fmt: skip
_OF_DELTALAKE = {
    "aws_force_credential_load",
    "aws_s3_allow_unsafe_rename",
    "aws_s3_locking_provider",
    "max_retries",
    "retry_timeout",
}
_PREFIX = re.compile(r"^(aws|azure|google)_", re.IGNORECASE)
_UNITS = {"ms": "milliseconds", "s": "seconds", "sec": "seconds", "m": "minutes", "min": "minutes", "h": "hours"}
_SIDE_BY_SIDE = 16
_MOST_CONNECTIONS = 8  # each change of a secret in a file makes a new one


def object_store(address: str, options: dict[str, str]) -> Any:
    """The store of one folder; names are relative to it.

    Args:
        address: of the folder, as `Storage.uri` has it.
        options: as `Storage.delta_options` has them.

    Raises:
        PermanentError: an option, or the address, means nothing to this kind of store.
    """
    from obstore.exceptions import BaseError
    from obstore.store import from_url

    of_connection: dict[str, Any] = {"timeout": timedelta(seconds=TIMEOUT_S)}
    of_store: dict[str, Any] = {}
    for key, value in os.environ.items():  # the client looks at these itself, unless it is given some
        if _PREFIX.match(key) and (name := _PREFIX.sub("", key).lower()) in _OF_THE_CONNECTION:
            of_connection[name] = value
    for key, value in options.items():
        name = _PREFIX.sub("", key)
        if name in _OF_THE_CONNECTION:
            of_connection[name] = value
        elif key not in _OF_DELTALAKE and not key.startswith("backoff_config."):
            of_store[key] = value
    connect: Any = from_url  # its types know the names of the options, which are the user's here
    try:
        return connect(
            address,
            config=of_store,
            client_options=of_connection,
            retry_config=_retries(options),
        )
    except (BaseError, ValueError) as e:
        raise PermanentError(f"lake {address}: {one_line(e)}: fix lake.root or lake.storage_options") from e


def _retries(options: dict[str, str]) -> dict[str, Any]:
    text = options.get("retry_timeout", RETRY_TIMEOUT)
    found = re.fullmatch(r"(\d+) ?([a-z]+)", text)
    if not found or found[2] not in _UNITS:
        raise ValueError(f"retry_timeout: {text!r}: write it as 30s or 2m")
    of_user = {"max_retries": int(options["max_retries"])} if "max_retries" in options else {}
    return {"retry_timeout": timedelta(**{_UNITS[found[2]]: int(found[1])}), **of_user}


@contextmanager
def _told_as_os_error() -> Iterator[None]:
    """What the store's client raises, as the error that pyarrow's callers expect of a file system."""
    from obstore.exceptions import BaseError

    try:
        yield
    except OSError:  # its "not found" is one
        raise
    except BaseError as e:
        raise OSError(one_line(e)) from e


class _Upload(io.BytesIO):
    """A file that is put whole when it is closed: one request, or several at once where it is large.

    What the store did not take is closed all the same: else Python, when it removes the object, would put it once more.
    """

    def __init__(self, store: Any, path: str) -> None:
        super().__init__()
        self._store, self._path = store, path

    def close(self) -> None:
        if not self.closed:
            try:
                with _told_as_os_error():
                    self._store.put(self._path, self.getvalue())
            finally:
                super().close()


class _Object(io.RawIOBase):
    """An object that is read in ranges, each with one request."""

    def __init__(self, store: Any, path: str) -> None:
        self._store, self._path, self._at = store, path, 0
        with _told_as_os_error():
            self._size = int(store.head(path)["size"])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._at, 0)
        length = left if size < 0 else min(size, left)
        if not length:
            return b""
        with _told_as_os_error():
            data = bytes(self._store.get_range(self._path, start=self._at, length=length))
        if len(data) != length:
            raise OSError(f"{self._path}: {len(data)} bytes came where {length} were asked for")
        self._at += len(data)
        return data


def delete_objects(store: Any, names: Sequence[str]) -> None:
    """Delete those that are there; Azure and Google refuse a name that somebody else has deleted meanwhile."""
    try:
        store.delete(list(names))
    except FileNotFoundError:  # and may have left those behind it
        for name in names:
            with suppress(FileNotFoundError):
                store.delete(name)


def _not_offered(*_: object) -> NoReturn:
    raise io.UnsupportedOperation("not in a store of objects")


@functools.lru_cache(_MOST_CONNECTIONS)
def object_file_system(root: str, options: tuple[tuple[str, str], ...]) -> FileSystem:
    """The store as a file system of pyarrow; paths are relative to the lake's root.

    There are no folders but in names: none needs to be made, none is found by `get_file_info`, and an empty one is not
    there.
    """
    return PyFileSystem(_ObjectFileSystem(root, dict(options)))


class _ObjectFileSystem(FileSystemHandler):  # type: ignore[misc] # pyarrow has no types
    def __init__(self, root: str, options: dict[str, str]) -> None:
        self._store = object_store(root, options)

    def get_type_name(self) -> str:
        return "objects"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        if len(paths) == 1:
            return [self._info(paths[0])]
        with ThreadPoolExecutor(_SIDE_BY_SIDE, "heads") as pool:  # vacuum asks for all that it will remove
            return list(pool.map(self._info, paths))

    def _info(self, path: str) -> FileInfo:
        try:
            with _told_as_os_error():
                return _file(self._store.head(path))
        except FileNotFoundError:
            return FileInfo(path, FileType.NotFound)

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        with _told_as_os_error():
            if selector.recursive:
                found = [_file(each) for each in self._store.list(selector.base_dir).collect()]
            else:
                level = self._store.list_with_delimiter(selector.base_dir)
                folders = [FileInfo(path.rstrip("/"), FileType.Directory) for path in level["common_prefixes"]]
                found = folders + [_file(each) for each in level["objects"]]
        if not found and not selector.allow_not_found:
            raise FileNotFoundError(selector.base_dir)
        return found

    def create_dir(self, path: str, recursive: bool) -> None:  # noqa: FBT001 - pyarrow's
        pass

    def delete_dir(self, path: str) -> None:
        with _told_as_os_error():
            if names := [each["path"] for each in self._store.list(path).collect()]:
                delete_objects(self._store, names)

    def delete_file(self, path: str) -> None:
        with _told_as_os_error():
            self._store.delete(path)

    def open_input_file(self, path: str) -> PythonFile:
        return PythonFile(_Object(self._store, path), mode="r")

    def open_input_stream(self, path: str) -> PythonFile:
        with _told_as_os_error():
            return PythonFile(io.BytesIO(self._store.get(path).bytes()), mode="r")

    def open_output_stream(self, path: str, metadata: object) -> PythonFile:  # noqa: ARG002
        return PythonFile(_Upload(self._store, path), mode="w")

    delete_dir_contents = delete_root_dir_contents = move = copy_file = open_append_stream = _not_offered


def _file(found: Any) -> FileInfo:
    return FileInfo(found["path"], FileType.File, size=found["size"], mtime=found["last_modified"])
