"""Intents of commits as small files beside a table's log, in a folder whose name every reader of tables passes over.

A file is there whole or not at all. It is never changed. Whoever finds that it is over removes it; that may be left
undone by a kill, and does no harm (`lake/rule/combining.py`).
"""

import json
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any
from uuid import uuid4

from pyarrow import fs

from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.combining import CommitIntent
from kgs_core.ports import FileWritten

INTENT_FOLDER = "_kgs_intents"
_FORM = 2
_removals = threading.BoundedSemaphore(8)
INTENT_SUFFIX = ".json"


class IntentStore:
    """The folder of one table's intents, or of other small files. May be used by several threads.

    What its methods raise is an `OSError`, also where the store does not answer.
    """

    def __init__(self, storage: Storage, table: str, folder: str = INTENT_FOLDER) -> None:
        self._storage = storage
        self._table = table
        self._folder = folder

    def _path(self, name: str = "") -> str:
        return self._storage.path(self._table, f"{self._folder}/{name}").rstrip("/")

    def put(self, name: str, data: bytes) -> None:
        """Make a file; if that fails it may be there, now or later.

        A kill on a disk leaves at most a file with another ending, which maintenance removes.
        """
        self._storage.make_folders(self._table, self._folder)
        files, path = self._storage.filesystem(), self._path(name)
        written = path if self._storage.is_in_objects else f"{path}#"
        try:
            with files.open_output_stream(written) as file:
                file.write(data)
            if written != path:
                files.move(written, path)
        finally:
            if written != path:
                with suppress(OSError):
                    files.delete_file(written)

    def ages(self) -> dict[str, float]:
        """Name -> seconds since the file was made, by the store's clock for the file and this machine's for now."""
        found = self._storage.filesystem().get_file_info(fs.FileSelector(self._path(), allow_not_found=True))
        now = time.time()
        return {info.base_name: now - info.mtime.timestamp() for info in found if info.is_file}

    def read(self, name: str) -> bytes:
        """Contents of a file.

        Raises:
            FileNotFoundError: there is none.
        """
        with self._storage.filesystem().open_input_stream(self._path(name)) as file:
            return bytes(file.read())

    def remove(self, names: Collection[str]) -> None:
        """Remove files, those that are there."""
        files, problem = self._storage.filesystem(), None
        for name in names:
            try:
                with suppress(FileNotFoundError):
                    files.delete_file(self._path(name))
            except PermissionError as e:  # one that somebody else owns keeps none of the others
                problem = e
        if problem is not None:
            raise problem


def remove_beside(store: IntentStore, names: Collection[str]) -> None:
    """Remove files in a thread. Where a store is slow to do so, those that are too many are left."""
    if not _removals.acquire(blocking=False):
        return

    def remove() -> None:
        try:
            with suppress(Exception):
                store.remove(names)
        finally:
            _removals.release()

    threading.Thread(target=remove, name="intent-removal", daemon=True).start()


def new_name() -> str:
    """A name that no other intent has."""
    return f"{uuid4().hex}{INTENT_SUFFIX}"


def encode_intent(intent: CommitIntent) -> bytes:
    """The bytes of an intent.

    Raises:
        ValueError: it has no files.
    """
    if not intent.files:
        raise ValueError("an intent needs a file")
    found = {
        "form": _FORM,
        "expected": dict(intent.expected),
        "new": dict(intent.new),
        "along": dict(intent.along),
        "looked_at": intent.looked_at,
        "files": [_file_to_json(file) for file in intent.files],
        "consumer": intent.consumer,
        "table": intent.table,
    }
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()


def decode_intent(data: bytes) -> CommitIntent | None:
    """The intent; None where this version of kgs does not understand it: it is left to its writer."""
    try:
        found = json.loads(data)
        files = [_file_from_json(file) for file in found["files"]]
        expected = {_text(app): None if at is None else _number(at) for app, at in found["expected"].items()}
        new = {_text(app): _number(at) for app, at in found["new"].items()}
        along = {_text(app): _number(at) for app, at in found["along"].items()}
        understood = found["form"] == _FORM and bool(files) and bool(expected) and bool(new)
        looked_at, consumer = _number(found["looked_at"]), _text(found.get("consumer", ""))
        table = _text(found.get("table", ""))
        return CommitIntent(expected, new, files, along, looked_at, consumer, table) if understood else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _file_to_json(file: FileWritten) -> dict[str, Any]:
    values = {"values": dict(file.partition_values)} if file.partition_values else {}
    return {"path": file.path, "size": file.size, "rows": file.rows, "stats": file.stats, **values}


def _file_from_json(found: Any) -> FileWritten:
    values = {_text(name): None if v is None else _text(v) for name, v in found.get("values", {}).items()}
    path = _path_inside(found["path"], len(values))
    return FileWritten(path, _number(found["size"]), _number(found["rows"]), _text(found["stats"]), values)


def _path_inside(value: Any, columns: int) -> str:
    """All data files lie in the table's own folder, or in one folder for each partition column below it."""
    *folders, name = _text(value).split("/")
    if name.startswith(("_", ".")) or len(folders) != columns or not all("=" in folder for folder in folders):
        raise ValueError(value)
    return str(value)
