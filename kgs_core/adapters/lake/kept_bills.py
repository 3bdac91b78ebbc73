"""Bills of days that are kept beside the tables, for topics forget: a file of JSON for each day of a group."""

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from typing import Any

from kgs_core.adapters.lake.storage import Storage
from kgs_core.config import Settings
from kgs_core.errors import PermanentError

BILL_FOLDER = "_kgs_bills"
_WHAT_IT_KNOWS = ("known_s", "compared_s")


class KeptBills:
    """Bills of a group by day (UTC), as `Bill.to_dict` gives them, in `<lake.root>/_kgs_bills/<group>/`."""

    def __init__(self, settings: Settings) -> None:
        self._storage = Storage(settings.lake.root, settings.lake.storage_options)
        self._folder = self._storage.path(BILL_FOLDER, settings.group)

    def load(self, day: date) -> dict[str, Any] | None:
        """The bill of a day; None: none is kept.

        Raises:
            PermanentError: the lake refuses, or the file is no bill.
        """
        text = self._read(day)
        return None if text is None else self._bill_in(text, day)

    def _read(self, day: date) -> bytes | None:
        path = self._path(day)
        try:
            with self._storage.filesystem().open_input_file(path) as file:
                return bytes(file.readall())
        except FileNotFoundError:
            return None
        except OSError as e:
            raise PermanentError(f"lake {self._storage.root}: {path}: {e}") from e

    def _bill_in(self, text: bytes, day: date) -> dict[str, Any]:
        try:
            found = json.loads(text)
            if not {"since", "used_consumer_hours", "compared", *_WHAT_IT_KNOWS} <= found.keys():
                raise ValueError("a part is missing")  # noqa: TRY301 - said in the same words as what is no JSON
        except (ValueError, AttributeError) as e:
            raise PermanentError(f"{self._path(day)}: is no bill ({e}): remove it") from e
        return dict(found)

    def keep(self, day: date, bill: Mapping[str, Any]) -> bool:
        """Keep a bill, unless the one that is kept knows more of the day: topics forget, so a later one knows less.

        A file comes whole or not at all; of two that are written at once, one is kept.

        Returns:
            Whether it is kept.

        Raises:
            PermanentError: the lake refuses. Then the one that is kept, if any, stays: it is not known what it knows.
        """
        text, before = self._read(day), None
        with suppress(PermanentError):  # it is no bill, whatever it is
            before = self._bill_in(text, day) if text is not None else None
        if before is not None and any(before[name] > bill[name] + 1 for name in _WHAT_IT_KNOWS):
            return False
        filesystem, path = self._storage.filesystem(), self._path(day)
        content = json.dumps(bill, indent=1, allow_nan=False).encode()
        try:
            if self._storage.is_s3:
                with filesystem.open_output_stream(path) as file:
                    file.write(content)
                return True
            filesystem.create_dir(self._folder, recursive=True)
            partial = f"{self._folder}/.{uuid.uuid4().hex}"
            with filesystem.open_output_stream(partial) as file:
                file.write(content)
            filesystem.move(partial, path)
        except OSError as e:
            raise PermanentError(f"lake {self._storage.root}: {path}: {e}") from e
        return True

    def _path(self, day: date) -> str:
        return f"{self._folder}/{day.isoformat()}.json"
