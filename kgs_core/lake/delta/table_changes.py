"""What was added to an append-only table since a version of its log.

Only rows count that a commit added: what compaction rewrites (`dataChange: false`), what changes properties alone, and
what is left of files of which kgs has ended rows (`row_removal`) is passed over. Where the log cannot say it any more
(entries cleaned away, rows removed by others, columns changed), it says so.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from kgs_core.lake.delta.log_entry import adds_no_record
from kgs_core.lake.delta.log_store import LogStore, entry_name
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.table_owner import REDRIVES

_THREADS = 16


class ChangesLostError(Exception):
    """The log does not tell what was added: look at the table as a whole."""


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file, by its path in the table's folder, with the values of partition columns in Delta's form."""

    path: str
    partition_values: Mapping[str, str | None] = field(default_factory=dict)

    def read(self, storage: Storage, table: str, columns: pa.Schema) -> pa.Table:
        """These columns of its rows; null where it is older than a column."""
        path, filesystem = storage.path(table, self.path), storage.filesystem()
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            there = [name for name in columns.names if name in file.schema_arrow.names]
            rows = file.read(columns=there, use_threads=False)
        out = [
            rows[f.name].cast(f.type)
            if f.name in there
            else pa.repeat(pa.scalar(value).cast(f.type), rows.num_rows)
            if (value := self.partition_values.get(f.name))
            else pa.nulls(rows.num_rows, f.type)
            for f in columns
        ]
        return pa.Table.from_arrays(out, schema=columns)


@dataclass(frozen=True, slots=True)
class AddedFiles:
    """Files that one version of the log added.

    Attributes:
        redriven: whether there are rows among them that are older than others that were there before.
        time_ms: when they were added.
    """

    version: int
    files: tuple[AddedFile, ...]
    size: int
    redriven: bool
    time_ms: int


def added_since(log: LogStore, base: int, end: int, *, only_appends: bool = False) -> Iterator[AddedFiles]:
    """What the versions `base` + 1 to `end` added, ascending; versions that added nothing are left out.

    Args:
        only_appends: also leave out versions that removed rows or changed columns.

    Raises:
        ChangesLostError: entries are gone; or, without `only_appends`, rows were removed or columns changed.
    """
    numbers = range(base + 1, end + 1)
    with ThreadPoolExecutor(_THREADS) as pool:
        for number, text in zip(numbers, pool.map(lambda n: _read(log, n), numbers), strict=True):
            actions = [json.loads(line) for line in text.splitlines() if line]
            if problem := _no_append(number, actions):
                if not only_appends:
                    raise ChangesLostError(problem)
            elif (found := _added(number, actions)).files:
                yield found


def files_of(table: DeltaTable, from_offset: int = 0) -> list[AddedFile]:
    """All files of a version of a table, but for those that say that all their records are before an offset."""
    adds = pa.table(table.get_add_actions()).to_pylist()
    return [
        AddedFile(unquote(add["path"]), {k: value_text(v) for k, v in (add.get("partition") or {}).items()})
        for add in adds
        if (highest := (add.get("max") or {}).get("_offset")) is None or highest >= from_offset
    ]


def in_portions(added: Iterable[AddedFiles], most_bytes: int) -> Iterator[list[AddedFiles]]:
    """Versions in order, so many at a time as have this many bytes of files, but one at least."""
    part: list[AddedFiles] = []
    for each in added:
        if part and sum(a.size for a in part) + each.size > most_bytes:
            yield part
            part = []
        part.append(each)
    if part:
        yield part


def value_text(value: Any) -> str | None:
    """A partition value in Delta's form."""
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _read(log: LogStore, version: int) -> bytes:
    try:
        return log.read(entry_name(version))
    except FileNotFoundError as e:
        raise ChangesLostError(f"version {version} is no longer in its log") from e


def _no_append(version: int, actions: list[dict[str, Any]]) -> str:
    """Other changes than added rows; empty: none."""
    if adds_no_record(actions):
        return ""
    if any(action["remove"].get("dataChange", True) for action in actions if "remove" in action):
        return f"version {version} removed rows"
    return f"version {version} changed columns or properties" if any("metaData" in each for each in actions) else ""


def _added(version: int, actions: list[dict[str, Any]]) -> AddedFiles:
    if adds_no_record(actions):
        return AddedFiles(version, (), 0, redriven=False, time_ms=0)
    adds = [action["add"] for action in actions if "add" in action and action["add"].get("dataChange", True)]
    redriven = any(action["txn"]["appId"] == REDRIVES for action in actions if "txn" in action)
    size = sum(add.get("size", 0) for add in adds)
    files = tuple(AddedFile(unquote(add["path"]), add.get("partitionValues") or {}) for add in adds)
    made_ms = min((add.get("modificationTime", 0) for add in adds), default=0)
    return AddedFiles(version, files, size, redriven, made_ms)
