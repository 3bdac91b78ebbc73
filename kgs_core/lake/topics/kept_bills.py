"""Daily bills kept beside the tables, since topics expire: one JSON file for each day of a group.

A file's name states how much its bill knows, so no writer replaces a bill that knows more. If two are written at
once, both exist: the better one counts, and the writer of the next bill of that day removes the other one.
"""

import json
import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from kgs_core.config import Settings
from kgs_core.errors import PermanentError, one_line
from kgs_core.lake.files.storage import Storage

BILL_FOLDER = "_kgs_bills"
_NAME = re.compile(r"(\d{4}-\d\d-\d\d)\.(\d{1,9})-(\d{1,9})\.json")
_ATTEMPTS = 3
_PARTIAL = "."
_PARTIAL_LEFT = timedelta(hours=1)
"""Age from which a partial file is left over: its writer was killed."""
_RELIED_ON = ("since", "known_s", "compared_s", "used_consumer_hours", "compared")
"""Fields that readers of a kept bill rely on."""


class _File(NamedTuple):
    """A bill's file, and what the bill knows, whole seconds; the one that knows more is the greater."""

    known_s: int
    compared_s: int
    name: str

    def knows_more(self, other: "_File") -> bool:
        return self.known_s > other.known_s + 1 or self.compared_s > other.compared_s + 1


class KeptBills:
    """Bills of a group by day (UTC), as `Bill.to_dict` gives them, in `<lake.root>/_kgs_bills/<group>/`."""

    def __init__(self, settings: Settings) -> None:
        self._storage = Storage.of(settings.lake)
        self._group = settings.group
        self._folder = self._storage.path(BILL_FOLDER, settings.group)

    def load(self, day: date) -> dict[str, Any] | None:
        """The bill of a day; None: none is kept.

        Raises:
            PermanentError: the lake refuses, or the file is no bill.
        """
        for _ in range(_ATTEMPTS):
            files = self._files(day)
            for file in files:
                if (text := self._read(file)) is not None:
                    return self._bill_in(text, file)
            if not files:
                break
            # Else all of them have made way meanwhile for a bill that knows more
        return None

    def keep(self, day: date, bill: Mapping[str, Any]) -> bool:
        """Keep a bill, unless the kept one knows more of the day: topics expire, so a later bill knows less.

        A file appears whole or not at all. After a kill there is the previous bill, or this one, or both.

        Returns:
            Whether it is kept.
        """
        known_s, compared_s = round(bill["known_s"]), round(bill["compared_s"])
        new = _File(known_s, compared_s, f"{day.isoformat()}.{known_s}-{compared_s}.json")
        before = self._files(day)
        if any(self._is_bill(file) for file in before if file.knows_more(new)):
            return False
        self._write(new, json.dumps(bill, indent=1, allow_nan=False).encode())
        for file in before:
            if file.name != new.name:
                self._remove(file.name)
        return True

    def _files(self, day: date) -> list[_File]:
        """Bill files of a day, the best one first."""
        found = (_NAME.fullmatch(name) for name in self._names())
        files = (_File(int(m[2]), int(m[3]), m[0]) for m in found if m is not None and m[1] == day.isoformat())
        return sorted(files, reverse=True)

    def _names(self) -> list[str]:
        from pyarrow import fs

        try:
            found = self._storage.filesystem().get_file_info(fs.FileSelector(self._folder, allow_not_found=True))
        except OSError as e:
            raise PermanentError(f"lake {self._storage.root}: {self._folder}: {e}") from e
        too_old = datetime.now(UTC) - _PARTIAL_LEFT
        for info in found:
            if info.base_name.startswith(_PARTIAL) and info.mtime is not None and info.mtime < too_old:
                self._remove(info.base_name)
        return [info.base_name for info in found]

    def _is_bill(self, file: _File) -> bool:
        text = self._read(file)
        with suppress(PermanentError):
            return text is not None and bool(self._bill_in(text, file))
        return False

    def _read(self, file: _File) -> bytes | None:
        """Content of a file; None: it no longer exists."""
        path = self._path(file.name)
        try:
            with self._storage.filesystem().open_input_file(path) as opened:
                return bytes(opened.readall())
        except FileNotFoundError:
            return None
        except OSError as e:
            raise PermanentError(f"lake {self._storage.root}: {path}: {e}") from e

    def _bill_in(self, text: bytes, file: _File) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(text)
            return found | {name: found[name] for name in _RELIED_ON}
        except (KeyError, ValueError, TypeError, RecursionError) as e:
            raise PermanentError(f"{self._path(file.name)}: is not a bill ({one_line(e)}): remove it") from e

    def _write(self, file: _File, content: bytes) -> None:
        filesystem, path = self._storage.filesystem(), self._path(file.name)
        try:
            if self._storage.is_in_objects:
                with filesystem.open_output_stream(path) as opened:
                    opened.write(content)
                return
            self._storage.make_folders("", f"{BILL_FOLDER}/{self._group}")
            partial = self._path(f"{_PARTIAL}{uuid.uuid4().hex}")
            with filesystem.open_output_stream(partial) as opened:
                opened.write(content)
            filesystem.move(partial, path)
        except OSError as e:
            raise PermanentError(f"lake {self._storage.root}: {path}: {e}") from e

    def _remove(self, name: str) -> None:
        with suppress(OSError):  # the better one counts all the same
            self._storage.filesystem().delete_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"
