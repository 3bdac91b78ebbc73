"""The files of one table's log: which there are, their bytes, and the creation of the next one if nobody has made it.

The creation is the lock that everything stands on: of two writers that put an entry under one number, one is refused.
On a disk it is a hard link, which fails where the name is taken; in a store of objects a conditional PUT.

A listing says what there is from a known entry on, so its cost does not grow with the log's age. A store of objects
lists names behind a given one. A folder cannot be listed in part; there the names are tried one after the other, and
`_last_checkpoint` is read *after* the first one that is missing. Only entries before a checkpoint are ever cleaned
away, and whoever makes a checkpoint notes it there first; so where it points behind the known entry, a missing name may
be a hole, and the whole folder is listed. So it is where the known entry is old: makers of checkpoints may note them in
the wrong order.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from kgs_core.lake.files.object_store import object_store
from kgs_core.lake.files.storage import Storage
from kgs_core.system.files import flush

LOG_FOLDER = "_delta_log"
LAST_CHECKPOINT = "_last_checkpoint"
ENTRY = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10})|\.[0-9a-f-]{36})?\.parquet")
_OLD_S = 3600.0  # no log is kept for less


class EntryExistsError(Exception):
    """The number is taken."""


class LogBrokenError(Exception):
    """An entry that should be there is missing, or is no entry."""


@dataclass(frozen=True, slots=True)
class LogListing:
    """Files of a log, from some entry on.

    Attributes:
        stamps: number of an entry -> a text that another file under its name would not have.
        checkpoints: number -> names of its parts; those with a part missing are left out.
    """

    stamps: dict[int, str]
    checkpoints: dict[int, list[str]]


class LogStore(Protocol):
    """The log's folder in some store. May be used by several threads."""

    def since(self, version: int | None) -> LogListing:
        """Entry `version` and all after it; None: everything. Empty where there is no folder.

        Raises:
            Exception: the store did not answer, in the words of its client.
        """

    def read(self, name: str) -> bytes:
        """Contents of a file.

        Raises:
            FileNotFoundError: there is none.
        """

    def entry(self, version: int) -> tuple[bytes, str]:
        """Contents and stamp of an entry.

        Raises:
            FileNotFoundError: there is none.
            Exception: the store did not answer.
        """

    def create(self, version: int, data: bytes) -> str:
        """Make an entry; its stamp.

        Raises:
            EntryExistsError: the number is taken; perhaps by this very call, whose first try's reply was lost.
        """


def log_store(storage: Storage, table: str) -> LogStore:
    """The log of a table."""
    if storage.is_in_objects:
        return ObjectLog(storage, table)
    return DiskLog(Path(storage.uri(table), LOG_FOLDER), fsync=storage.fsync)


def entry_name(version: int) -> str:
    """Name of an entry in the log's folder."""
    return f"{version:020d}.json"


def last_checkpoint(read: Callable[[str], bytes]) -> int | None:
    """Number of the newest checkpoint that its maker has noted; None: none, or the note cannot be understood."""
    try:
        return int(json.loads(read(LAST_CHECKPOINT))["version"])
    except (FileNotFoundError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _sorted_out(names: Iterable[tuple[str, str]]) -> LogListing:
    """Names with their stamps as a listing."""
    stamps: dict[int, str] = {}
    parts: dict[int, dict[int, list[str]]] = {}
    for name, stamp in names:
        if match := ENTRY.fullmatch(name):
            stamps[int(match[1])] = stamp
        elif match := CHECKPOINT.fullmatch(name):
            parts.setdefault(int(match[1]), {}).setdefault(int(match[2] or 1), []).append(name)
    whole = {
        version: sorted(found)
        for version, by_count in parts.items()
        for count, found in by_count.items()
        if len(found) >= count  # of one part, there may be several, all alike
    }
    return LogListing(stamps, whole)


class DiskLog(LogStore):
    """Port `LogStore` on a local disk."""

    def __init__(self, folder: Path, *, fsync: bool = False) -> None:
        self._folder = folder
        self._fsync = fsync

    def since(self, version: int | None) -> LogListing:
        """See `LogStore`."""
        if version is None:
            return self._all()
        stamps: dict[int, str] = {}
        at = version
        while (stamp := self._stamp(entry_name(at))) is not None:
            stamps[at] = stamp
            at += 1
        noted = last_checkpoint(self.read)
        may_be_hole = (noted is not None and noted >= at) or self._is_old(version)
        return self._all() if may_be_hole else LogListing(stamps, {})

    def _is_old(self, version: int) -> bool:
        try:
            return time.time() - os.stat(self._folder / entry_name(version)).st_mtime > _OLD_S
        except OSError:
            return True

    def _all(self) -> LogListing:
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            names = []
        # files, not links and folders; a name that goes in the meantime is not there
        return _sorted_out((name, stamp) for name in names if (stamp := self._stamp(name)) is not None)

    def _stamp(self, name: str) -> str | None:
        try:
            found = os.stat(self._folder / name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return f"{found.st_ino}-{found.st_mtime_ns}-{found.st_size}"

    def read(self, name: str) -> bytes:
        """See `LogStore`."""
        return (self._folder / name).read_bytes()

    def entry(self, version: int) -> tuple[bytes, str]:
        """See `LogStore`; an entry never changes, so its bytes and its stamp may be asked for one after the other."""
        data, stamp = self.read(entry_name(version)), self._stamp(entry_name(version))
        if stamp is None:
            raise FileNotFoundError(entry_name(version))
        return data, stamp

    def create(self, version: int, data: bytes) -> str:
        """See `LogStore`; a kill leaves at most a file whose name, with '#', every reader of logs passes over."""
        name = entry_name(version)
        temporary = self._folder / f"{name}#{uuid4().int}"
        try:
            temporary.write_bytes(data)
            if self._fsync:
                flush(temporary)
            try:
                os.link(temporary, self._folder / name)
            except FileExistsError as e:
                raise EntryExistsError(name) from e
            if self._fsync:
                flush(self._folder)
            stamp = self._stamp(temporary.name)
        finally:
            with suppress(OSError):
                temporary.unlink()
        if stamp is None:
            raise FileNotFoundError(temporary)
        return stamp


class ObjectLog(LogStore):
    """Port `LogStore` in a store of objects."""

    def __init__(self, storage: Storage, table: str) -> None:
        self._store = object_store(storage.uri(f"{table}/{LOG_FOLDER}"), storage.delta_options())

    def since(self, version: int | None) -> LogListing:
        """See `LogStore`."""
        found = self._store.list(offset=None if version is None else f"{version:020d}").collect()
        return _sorted_out((str(file["path"]), _stamp_of(file)) for file in found)

    def read(self, name: str) -> bytes:
        """See `LogStore`."""
        return bytes(self._store.get(name).bytes())

    def entry(self, version: int) -> tuple[bytes, str]:
        """See `LogStore`."""
        found = self._store.get(entry_name(version))
        return bytes(found.bytes()), _stamp_of(found.meta)

    def create(self, version: int, data: bytes) -> str:
        """See `LogStore`."""
        from obstore.exceptions import AlreadyExistsError

        try:
            made = self._store.put(entry_name(version), data, mode="create", use_multipart=False)
        except AlreadyExistsError as e:
            raise EntryExistsError(entry_name(version)) from e
        return _stamp_of(made)


def _stamp_of(found: Any) -> str:
    """The ETag; Azure puts it in quotes in one answer and not in another."""
    return str(found["e_tag"]).strip('"')
