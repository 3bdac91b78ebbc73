"""The lake as Delta tables: the ports `Lake` and `PinnedTable` by deltalake."""

import json
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow import fs

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import PermanentError, PortError, TransientError, UnsafeError, one_line
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.delta.delta_maintenance import maintain_table, retention_h
from kgs_core.lake.delta.delta_table import DeltaTopicTable
from kgs_core.lake.delta.evolution import add_columns
from kgs_core.lake.delta.log_store import log_store
from kgs_core.lake.delta.pace import CommitWay
from kgs_core.lake.delta.probe import probe, remove_left_over
from kgs_core.lake.delta.row_removal import RowRemoval, restore_append_only
from kgs_core.lake.delta.table_changes import AddedFile, ChangesLostError, added_since, value_text
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.delta.whole_table import opened_table
from kgs_core.lake.files.columns import plain
from kgs_core.lake.files.ended_rows import load_ended, note_ended
from kgs_core.lake.files.intent_store import INTENT_FOLDER, IntentStore
from kgs_core.lake.files.places import PartitionKey, Places
from kgs_core.lake.files.row_schema import ORIGIN_FIELDS
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule import Offsets
from kgs_core.model import OffsetRange
from kgs_core.ports import PLAIN, Lake, RowsRemoved, TableContents, TableDescription, TableLayout, Upkeep
from kgs_core.ports.upkeep import Moved

_FOREVER_H = 1_000_000.0


class DeltaLake(Lake):
    """Port `Lake`."""

    def __init__(self, settings: LakeSettings, consumer: str = "", commits: CommitWay = "auto") -> None:
        self._settings = settings
        self._consumer = consumer
        self._commits = commits
        self._storage = Storage.of(settings)
        self._turns: dict[str, threading.Lock] = {}

    @property
    def root(self) -> str:
        """See `Lake`."""
        return self._storage.root

    def probe(self) -> None:
        """See `Lake`."""
        probe(self._storage)

    def remove_probes(self) -> None:
        """See `Lake`."""
        remove_left_over(self._storage)

    def folders(self, under: str) -> list[str]:
        """See `Lake`."""
        selector = fs.FileSelector(self._storage.path(under).rstrip("/"), allow_not_found=True)
        try:
            listing = self._storage.filesystem().get_file_info(selector)
        except OSError as e:
            raise PermanentError(f"lake {self.root}: cannot be listed: {one_line(e)}: check path and rights") from e
        return [info.base_name for info in listing if info.type == fs.FileType.Directory]

    def table(self, name: str, schema: pa.Schema, layout: TableLayout = PLAIN) -> DeltaTopicTable:
        """See `Lake`."""
        log = TableLog(self._storage, name, schema, self._settings, layout, self._consumer)
        return DeltaTopicTable(log, self._turn(name), commits=self._commits)

    def _turn(self, name: str) -> threading.Lock:
        return self._turns.setdefault(name, threading.Lock())  # one step of Python, so two threads get the same one

    def columns(
        self, name: str, default: pa.Schema, wanted: pa.Schema | None = None, layout: TableLayout = PLAIN
    ) -> pa.Schema:
        """See `Lake`."""
        log = TableLog(self._storage, name, pa.schema(ORIGIN_FIELDS), self._settings, layout, self._consumer)
        DeltaTopicTable(log, made_with=default).create()
        if wanted is not None:
            add_columns(log, wanted)
        return pa.schema([pa.field(f.name, plain(f.type), f.nullable) for f in log.metadata.columns])

    def open(self, name: str) -> DeltaTopicTable:
        """See `Lake`."""
        return DeltaTopicTable(self._log(name), self._turn(name), commits=self._commits)

    def _opened(self, name: str) -> DeltaTable | None:
        try:
            return opened_table(self._storage, name)
        except PortError:
            raise
        except Exception as e:
            raise TransientError(f"table {name}: {one_line(e)}") from e

    def _log(self, name: str) -> TableLog:
        """Of a table that is there, with the columns that it has."""
        found = self._opened(name)
        if found is None:
            raise UnsafeError(f"table {name}: not there: start a consumer, it makes the table")
        layout = TableLayout(tuple(found.metadata().partition_columns))
        return TableLog(self._storage, name, pa.schema(found.schema()), self._settings, layout, self._consumer)

    def all_versions(self, name: str) -> dict[str, int]:
        """See `Lake`."""
        return load_transactions(self._storage, name)

    def forget_intents(self, name: str) -> None:
        """See `Lake`."""
        try:
            store = IntentStore(self._storage, name)
            store.remove(store.ages())
        except Exception as e:
            raise TransientError(f"table {name}: {INTENT_FOLDER}: {one_line(e)}") from e

    def pin(self, name: str) -> "PinnedDelta | None":
        """See `Lake`."""
        handle = opened_table(self._storage, name)
        return None if handle is None else PinnedDelta(self._storage, name, handle)

    def maintain(self, name: str, *, dry_run: bool) -> Upkeep | None:
        """See `Lake`."""
        if not dry_run:
            with suppress(Exception):  # there is no table, others commit, or the store does not answer: the next one
                restore_append_only(self._log(name))
        return maintain_table(self._storage, name, dry_run=dry_run)

    def ended(self, name: str) -> dict[str, dict[PartitionKey, Offsets]]:
        """See `Lake`."""
        return load_ended(self._storage, name)

    def note_ended(self, name: str, by: str, places: Places) -> None:
        """See `Lake`."""
        note_ended(self._storage, name, by, places)

    def remove_rows(self, name: str, places: Places, moved: Moved) -> RowsRemoved:
        """See `Lake`."""
        return RowRemoval(self._log(name), places, moved).run()

    def kept_h(self, name: str) -> float:
        """See `Lake`."""
        found = self._opened(name)
        return 0.0 if found is None else min(retention_h(found), _FOREVER_H)

    def vacuum_replaced(self, name: str) -> int:
        """See `Lake`."""
        try:
            found = opened_table(self._storage, name)
            # Not `full`: files whose commits are still to come stay
            return 0 if found is None else len(found.vacuum(0, dry_run=False, enforce_retention_duration=False))
        except PortError:
            raise
        except Exception as e:
            raise TransientError(f"table {name}: vacuum: {one_line(e)}: run it again") from e


class PinnedDelta:
    """Port `PinnedTable`."""

    def __init__(self, storage: Storage, name: str, handle: DeltaTable) -> None:
        self._storage = storage
        self._name = name
        self._handle = handle
        self._files: dict[str, AddedFile] = {}

    def refresh(self) -> None:
        """See `PinnedTable`."""
        self._handle.update_incremental()

    @property
    def version(self) -> int:
        """See `PinnedTable`."""
        return self._handle.version()

    def version_of(self, app: str) -> int | None:
        """See `PinnedTable`."""
        return self._handle.transaction_version(app)

    def contents(self) -> TableContents:
        """See `PinnedTable`."""
        files = pa.table(self._handle.get_add_actions(flatten=True))
        sizes, rows = files["size_bytes"], files["num_records"] if "num_records" in files.column_names else None
        counted = rows is not None and rows.null_count == 0
        return TableContents(
            self._handle.version(),
            (pc.sum(rows).as_py() or 0) if counted or not files.num_rows else None,
            pc.sum(sizes).as_py() or 0,
            files.num_rows,
            self.description().fields,
        )

    def description(self) -> TableDescription:
        """See `PinnedTable`."""
        metadata = self._handle.metadata()
        fields = json.loads(self._handle.schema().to_json())["fields"]
        return TableDescription(fields, tuple(metadata.partition_columns), metadata.description or None)

    @property
    def schema(self) -> pa.Schema:
        """See `PinnedTable`."""
        return pa.schema(self._handle.schema().to_arrow())

    def check_readable(self, columns: Collection[str]) -> None:
        """See `PinnedTable`."""
        missing = set(columns) - {field.name for field in self._handle.schema().fields}
        if missing:
            raise PermanentError(f"table {self._name}: has no column {', '.join(sorted(missing))}: kgs did not make it")
        if self._handle.protocol().min_reader_version != 1:
            raise PermanentError(
                f"table {self._name}: rows may be hidden by Delta features that kgs does not read: rebuild it"
            )

    def files(
        self,
        offsets: OffsetRange | None = None,
        *,
        stamps_ms: OffsetRange | None = None,
        written_since_ms: int | None = None,
    ) -> list[str]:
        """See `PinnedTable`."""
        adds = pa.table(self._handle.get_add_actions(flatten=True))
        if written_since_ms is not None:
            adds = adds.filter(pc.field("modification_time").cast(pa.int64()) >= written_since_ms)
        adds = _overlapping(adds, "_offset", offsets)
        us = None if stamps_ms is None else OffsetRange(stamps_ms.start * 1000, stamps_ms.end * 1000)
        adds = _overlapping(adds, "_timestamp", us)
        names = self._handle.metadata().partition_columns
        texts = [[value_text(value) for value in adds[f"partition.{name}"].to_pylist()] for name in names]
        found = [
            AddedFile(unquote(path), dict(zip(names, values, strict=True)))  # a URI in the log
            for path, *values in zip(adds["path"].to_pylist(), *texts, strict=True)
        ]
        self._files |= {file.path: file for file in found}
        return [file.path for file in found]

    def newest_files(self, rows: int) -> list[str]:
        """See `PinnedTable`."""
        adds = pa.table(self._handle.get_add_actions(flatten=True))
        if not {"max._timestamp", "num_records"} <= set(adds.column_names):
            return []
        adds = adds.sort_by([("max._timestamp", "descending")])
        before = pc.subtract(pc.cumulative_sum(pc.fill_null(adds["num_records"], 0)), adds["num_records"])
        return [unquote(path) for path in adds.filter(pc.less(before, rows))["path"].to_pylist()]

    def added_since(self, version: int) -> list[str]:
        """See `PinnedTable`."""
        try:
            changes = [*added_since(log_store(self._storage, self._name), version, self.version, only_appends=True)]
        except ChangesLostError as e:
            raise FileNotFoundError(str(e)) from e
        return [file.path for each in changes for file in each.files]

    def read(self, file: str, columns: Sequence[str]) -> pa.Table:
        """See `PinnedTable`; by pyarrow, since deltalake's own reader can abort the process when it ends."""
        there = self.schema
        wanted = [there.field(name) if name in there.names else pa.field(name, pa.null()) for name in columns]
        return self._files.get(file, AddedFile(file)).read(self._storage, self._name, pa.schema(wanted))


def _overlapping(adds: pa.Table, column: str, wanted: OffsetRange | None) -> pa.Table:
    """Files that may hold values of a range: by their statistics, and those that have none."""
    lowest, highest = f"min.{column}", f"max.{column}"
    if wanted is None or not {lowest, highest} <= set(adds.column_names):
        return adds
    first, last = (_whole(adds[name]) for name in (lowest, highest))
    outside = pc.or_(pc.less(last, wanted.start), pc.greater_equal(first, wanted.end))
    return adds.filter(pc.invert(pc.fill_null(outside, False)))  # noqa: FBT003 - a file that does not say


def _whole(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers as they are, times in microseconds."""
    is_time = pa.types.is_timestamp(values.type)
    return values.cast(pa.timestamp("us", tz=values.type.tz)).cast(pa.int64()) if is_time else values
