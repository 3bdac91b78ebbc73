"""What this process knows of one table's log: looking at it, checking what is found, and making its next entry.

The rules are those of `delta_table`, 2 to 7, which the direct and the combined commit share.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import ProtocolError, TransientError
from kgs_core.lake.delta.delta_log import LogState, followed, next_state, read_state
from kgs_core.lake.delta.delta_maintenance import MIN_RETENTION_H
from kgs_core.lake.delta.log_entry import FileReplaced, entry_of, metadata_entry, removal_entry
from kgs_core.lake.delta.log_store import LogStore, log_store
from kgs_core.lake.delta.log_upkeep import keep_short
from kgs_core.lake.delta.table_properties import check_table
from kgs_core.lake.delta.whole_table import check_files, flush_from
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.combining import CommitIntent
from kgs_core.ports import PLAIN, FileWritten, TableLayout
from kgs_core.system.secret_files import SecretFiles

ANEW_S = 30.0
"""After this, a commit that goes on waiting or losing looks at its files again, and at the log as a whole."""
SURE_S = 600.0
"""Of an entry made so long after the last look at the log as a whole, the log itself must tell what it is."""
MAX_FILE_AGE_S = MIN_RETENTION_H * 3600 / 2
"""Of a file that is committed: vacuum does not take it before twice this age."""
MOST_AHEAD = 8
_THREADS = 32


class FileGoneError(TransientError):
    """A file that was to be committed is not there, or not whole."""


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """A table's metadata, as of the last entry that changed it. `action`: Delta's `metaData`."""

    action: Mapping[str, Any]
    columns: pa.Schema

    @property
    def table_id(self) -> str:
        """What the table is told from one by that was made under its name before or after."""
        return str(self.action["id"])


class TableLog:
    """One table's log. Not for use by two threads at once.

    Attributes:
        schema: columns of the files that are to be committed.
        writer: the name of this one of all writers in the entries that it makes.
        consumer: who reads its batches, for those who read the log; empty where nobody said so.
    """

    def __init__(
        self,
        storage: Storage,
        name: str,
        schema: pa.Schema,
        lake: LakeSettings,
        layout: TableLayout = PLAIN,
        consumer: str = "",
    ) -> None:
        self.name = name
        self.schema = schema
        self.writer = uuid4().hex
        self.consumer = consumer
        self.layout = layout
        self.lake = lake
        self.storage = storage
        self.uri = storage.uri(name)
        self.state: LogState | None = None
        self.looked_s = 0.0
        self.was_there = False
        self._log: LogStore | None = None
        self._files = SecretFiles(storage.options)
        self._metadata: TableMetadata | None = None
        self._ahead = 2

    @property
    def options(self) -> dict[str, str]:
        """Options for deltalake, with the secrets that their files hold now."""
        return self.storage.delta_options()

    @property
    def metadata(self) -> TableMetadata:
        """As of the newest state.

        Raises:
            ProtocolError: the log was not looked at yet.
        """
        if self._metadata is None:
            raise ProtocolError(f"table {self.name}: its log was not looked at")
        return self._metadata

    def looked_at(self, files: Sequence[FileWritten], *, again: bool = False, lost: bool = False) -> LogState:
        """The newest state, with the files there and young.

        Args:
            again: the log was looked at a moment ago, so entries behind the known one are asked for by their names;
                once in `ANEW_S` all of it, and the files.
            lost: likewise, and there is such an entry, for this writer has just lost its number.

        Raises:
            FileGoneError: a file is gone.
            TransientError: one is too old.
            Exception: the store did not answer.
        """
        known = self.state
        if (again or lost) and known is not None and abs(time.time() - self.looked_s) < ANEW_S:
            state = followed(self.connected(), known, self._ahead if lost else 1)
            if state is not None and not (lost and state is known):
                if lost:
                    self._ahead = min(max(state.version - known.version + 1, 2), MOST_AHEAD)
                self.state = state
                return state
        checks = [helpers().submit(self.check_file, file) for file in files]
        self.looked_s = time.time()
        state = self.refreshed()
        try:
            for check in checks:
                check.result()
        except FileGoneError:
            self.connect_anew()
            raise
        return state

    def write(self, state: LogState, batches: Sequence[CommitIntent]) -> None:
        """Create the entry behind `state`, which the positions were judged as of.

        Raises:
            EntryExistsError: the number is taken.
            Exception: the entry may be there, now or later.
        """
        stamp = self._create(state, entry_of(batches, self.writer))
        versions = {app: version for batch in batches for app, version in batch.versions.items()}
        self.state = state.followed_by(state.version + 1, stamp, versions, self.writer, len(batches))

    def write_metadata(self, state: LogState, metadata: Mapping[str, Any], added: Sequence[str]) -> None:
        """Create the entry behind `state` that replaces the metadata as of it; afterwards the table is read anew.

        `added`: see `metadata_entry`.

        Raises:
            EntryExistsError: the number is taken.
            Exception: the entry may be there, now or later.
        """
        self._create(state, metadata_entry(metadata, added, self.writer))
        self.state = None

    def write_removal(self, state: LogState, files: Sequence[FileReplaced], versions: Mapping[str, int]) -> None:
        """Create the entry behind `state` that ends rows of these files and moves versions.

        Raises:
            EntryExistsError: the number is taken.
            Exception: the entry may be there, now or later.
        """
        stamp = self._create(state, removal_entry(files, versions, self.writer))
        self.state = state.followed_by(state.version + 1, stamp, versions, self.writer, 0)

    def _create(self, state: LogState, entry: bytes) -> str:
        number = state.version + 1
        if state.ours < state.version:
            flush_from(self.storage, self.name, state.ours + 1)
        stamp = self.connected().create(number, entry)
        if abs(time.time() - self.looked_s) > SURE_S:
            raise TimeoutError(f"entry {number} was made long after the log was looked at")
        keep_short(self.storage, self.name, number, self.lake.checkpoint_interval)
        return stamp

    def check_file(self, file: FileWritten) -> None:
        """A log takes any name: a missing file would move the position without its rows.

        The age is the file's own, on the clock that vacuum goes by: no clock of this process runs while it is stopped.
        """
        info = self.storage.filesystem().get_file_info(self.storage.path(self.name, file.path))
        if not info.is_file or info.size != file.size:
            raise FileGoneError(f"table {self.name}: {file.path} is gone or has another size: batch dropped")
        if time.time() - info.mtime.timestamp() > MAX_FILE_AGE_S:
            raise TransientError(
                f"table {self.name}: {file.path} is older than half a day: batch dropped, vacuum may take it"
            )

    def connected(self) -> LogStore:
        """The log's store."""
        if self._log is None or self._files.have_changed():
            self._files = SecretFiles(self.storage.options)
            self._log = log_store(self.storage, self.name)
        return self._log

    def connect_anew(self) -> None:
        """What was heard last may not have come from the store."""
        self._log = self.state = None
        self.storage.forget_connections()

    def refreshed(self) -> LogState:
        """The newest state, by a listing."""
        state = next_state(self.connected(), self.state) if self.state is not None else None
        self.state = state if state is not None else self._read_anew()
        self.was_there = True
        return self.state

    def _read_anew(self) -> LogState:
        """The newest state of a table whose schema, properties and protocol, as of then, were looked at."""
        self.state = None
        try:
            handle = DeltaTable(self.uri, storage_options=self.options)
        except TableNotFoundError:
            raise
        except Exception:
            if not self.storage.is_in_objects:
                read_state(self.connected())  # says what is broken, in words
            raise
        state = read_state(self.connected())
        if not self.was_there:
            check_files(self.storage, self.name, handle)
        if state is None or state.changed > handle.version():
            raise TimeoutError("its log changed while it was read")
        check_table(handle, self.name, self.schema, self.layout.partition_by)
        self._metadata = metadata_of(handle)
        return state


def metadata_of(handle: DeltaTable) -> TableMetadata:
    """The metadata of a loaded table."""
    found = handle.metadata()
    schema: Schema = handle.schema()
    named = {"name": found.name, "description": found.description, "createdTime": found.created_time}
    action = {
        "id": str(found.id),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema.to_json(),
        "partitionColumns": found.partition_columns,
        "configuration": found.configuration,
    }
    return TableMetadata(action | {key: value for key, value in named.items() if value is not None}, pa.schema(schema))


@cache
def helpers() -> ThreadPoolExecutor:
    """Threads for requests beside others: a look at a file, an intent that is read or removed."""
    return ThreadPoolExecutor(_THREADS, "lake-helper")
