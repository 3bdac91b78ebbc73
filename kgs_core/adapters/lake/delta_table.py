"""The compare-and-set commit on one Delta table: rows and positions in one log entry, or neither.

Theory of operation. Correctness needs no lock, no lease and no Kafka group: the table's log is the lock.
1. Every commit of rows carries, in the same atomic log entry, one `txn` action per partition: application id, version
   = next offset. So there is no moment at which rows are there and their position is not, or the reverse.
2. Before a commit the handle is refreshed, and every partition's stored version must *equal* the offset that its batch
   began at. Delta's own idempotence ("skip if the stored version is not lower") is not enough: it takes a stale writer
   whose batch begins below and ends above the stored position, and doubles rows.
3. The commit goes through *the handle that was checked*. deltalake then compares every log entry made since that
   base with ours, and refuses if any of them touched one of our application ids. A fresh handle, or a write by
   address, would load a newer base after the check and lose the guard. Both halves are needed: the check catches
   writers that committed before our refresh, the conflict check those that commit after it.
4. An exception does not mean "not committed" (a checkpoint after the commit may have failed, the reply may be lost).
   After any exception the table is loaded anew and asked: all at the end = landed; all at the start = try again
   with the same file; anything else = refused, and the batch is dropped.
5. A data file is never deleted after a failed or unknown commit: it may be in the table. Vacuum takes what is not.
6. A file older than half of vacuum's retention is not committed: vacuum might have taken it (a process that was
   stopped for days would otherwise commit a name without a file behind it).
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from kgs_core.adapters.lake.storage import Storage
from kgs_core.adapters.lake.table_properties import check_table, wanted_properties
from kgs_core.config.settings import LakeSettings
from kgs_core.errors import PortError, TransientError, UnsafeError, one_line
from kgs_core.exactly_once.commit_rule import CommitDecision, judge
from kgs_core.ports import CommitOutcome, FileWritten

TRIES = 8
MAX_LOG_RETRIES = 200  # other partitions' commits in between are re-tried by deltalake itself
T = TypeVar("T")


class DeltaTopicTable:
    """Port `LakeTable`: one Delta table behind one handle. Not for use by two threads at once."""

    def __init__(self, storage: Storage, name: str, schema: pa.Schema, lake: LakeSettings) -> None:
        self.name = name
        self._storage = storage
        self.schema = schema
        self._uri = storage.uri(name)
        self._options = storage.delta_options()
        self._max_file_age_s = lake.vacuum_retention_h * 3600 / 2
        self._lake = lake
        self._handle: DeltaTable | None = None
        self._checked: object = None
        self._was_there = False

    def create(self) -> None:
        """See `LakeTable`."""

        def attempt() -> None:
            try:
                DeltaTable.create(
                    self._uri,
                    schema=self.schema,
                    mode="ignore",
                    configuration=wanted_properties(self._lake.checkpoint_interval, self._lake.log_retention_h),
                    storage_options=self._options,
                )
            except Exception:
                if not self._is_there():  # else another consumer made it in the same moment
                    raise
            self._refreshed()

        self._persist(attempt)

    def exists(self) -> bool:
        """See `LakeTable`."""
        return self._persist(self._is_there)

    def _is_there(self) -> bool:
        # not `DeltaTable.is_deltatable`: it holds Python's lock until the store answers, heartbeats would stop
        try:
            DeltaTable(self._uri, storage_options=self._options)
        except TableNotFoundError:
            return False
        return True

    def versions(self, apps: Collection[str]) -> dict[str, int | None]:
        """See `LakeTable`."""

        def read() -> dict[str, int | None]:
            handle = self._refreshed()
            return {app: handle.transaction_version(app) for app in apps}  # reads the log, so it can fail like a load

        return self._persist(read)

    def commit(
        self,
        expected: Mapping[str, int | None],
        new: Mapping[str, int],
        file: FileWritten | None,
        along: Mapping[str, int] | None = None,
    ) -> CommitOutcome:
        """See `LakeTable`; the versions go into the log as `txn` actions."""
        problem: Exception | None = None
        for attempt in range(TRIES):
            try:
                handle = self._refreshed()
                stored = {app: handle.transaction_version(app) for app in {*expected, *new}}
                verdict = judge(stored, expected, new, retry=problem is not None)
                if verdict is not CommitDecision.COMMIT:
                    return CommitOutcome.COMMITTED if verdict is CommitDecision.LANDED else CommitOutcome.REFUSED
                self._check_file(file)
                self._write(handle, {**(along or {}), **new}, file)
            except PortError:
                raise
            except Exception as e:  # noqa: BLE001 - deltalake raises OSError, DeltaError and plain exceptions alike
                problem = e
                self._connect_anew()
                time.sleep(min(0.02 * 2**attempt, 1.0))
            else:
                return CommitOutcome.COMMITTED
        last = one_line(problem) if problem else ""
        raise TransientError(f"table {self.name}: commit failed {TRIES} times, last: {last}") from problem

    def _write(self, handle: DeltaTable, new: Mapping[str, int], file: FileWritten | None) -> None:
        actions: list[AddAction | RemoveAction] = (
            [AddAction(file.path, file.size, {}, int(time.time() * 1000), True, file.stats)]  # noqa: FBT003
            if file
            else []
        )
        handle.create_write_transaction(
            actions,
            "append",
            self.schema,
            commit_properties=CommitProperties(
                app_transactions=[Transaction(app, version) for app, version in sorted(new.items())],
                max_commit_retries=MAX_LOG_RETRIES,
            ),
        )

    def _check_file(self, file: FileWritten | None) -> None:
        """`create_write_transaction` takes any name: a missing file would move the position without its rows.

        The age is the file's own, on the clock that vacuum goes by: no clock of this process runs while it is stopped.
        """
        if file is None:
            return
        info = self._storage.filesystem().get_file_info(self._storage.path(self.name, file.path))
        if not info.is_file or info.size != file.size:
            self._connect_anew()
            raise TransientError(f"table {self.name}: {file.path} is gone or has another size: batch dropped")
        if time.time() - info.mtime.timestamp() > self._max_file_age_s:
            raise TransientError(
                f"table {self.name}: {file.path} is older than half of vacuum's retention: batch dropped"
            )

    def _connect_anew(self) -> None:
        """What was heard last may not have come from the store."""
        self._handle = None
        self._storage.forget_connections()

    def _refreshed(self) -> DeltaTable:
        if self._handle is None:
            self._handle = DeltaTable(self._uri, storage_options=self._options)
            self._checked = None
        else:
            self._handle.update_incremental()
        metadata = self._handle.metadata()
        seen = (metadata.id, metadata.configuration, str(self._handle.protocol()), self._handle.schema().to_json())
        if seen != self._checked:  # a change of schema, properties or protocol by anybody is looked at once
            check_table(self._handle, self.name, self.schema)
            self._checked = seen
        self._was_there = True
        return self._handle

    def _not_there(self, error: TableNotFoundError) -> str:
        """Also what a table that cannot be made is called by deltalake."""
        if self._was_there:
            return f"table {self.name}: not there: it was moved or deleted: bring it back"
        return (
            f"table {self.name}: not there, and not made: {one_line(error)}: see that this user may write to "
            f"{self._storage.root}; if the table was there before, it was moved or deleted: bring it back"
        )

    def _persist(self, action: Callable[[], T]) -> T:
        """Try again what fails for a moment: a log entry cleaned away under us, a listing that raced with commits."""
        problem: Exception | None = None
        for attempt in range(TRIES):
            try:
                return action()
            except PortError:
                raise
            except TableNotFoundError as e:
                if self._handle is None:
                    raise UnsafeError(self._not_there(e)) from e
                problem = e
            except Exception as e:  # noqa: BLE001 - as above
                problem = e
            self._connect_anew()
            time.sleep(min(0.02 * 2**attempt, 1.0))
        raise TransientError(f"table {self.name}: {one_line(problem) if problem else ''}") from problem


def open_table(storage: Storage, name: str, lake: LakeSettings) -> DeltaTopicTable:
    """A table with the columns that it has.

    Raises:
        UnsafeError: there is none.
        TransientError: the store did not answer.
    """
    try:
        found = DeltaTable(storage.uri(name), storage_options=storage.delta_options())
    except TableNotFoundError as e:
        raise UnsafeError(f"table {name}: not there: start a consumer, it makes the table") from e
    except Exception as e:
        raise TransientError(f"table {name}: {one_line(e)}") from e
    return DeltaTopicTable(storage, name, pa.schema(found.schema()), lake)
