"""The files of one version of a Delta table, with their deletion vectors, which deltalake does not tell."""

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kgs_core.lake.delta.log_store import LogStore, entry_name

Add = dict[str, Any]
_THREADS = 16


def live_files(log: LogStore, version: int) -> list[Add]:
    """The `add` action of each file that version `version` has, in the order of the log.

    Raises:
        FileNotFoundError: an entry was cleaned away meanwhile.
    """
    checkpoint, numbers = _newest(log, version)
    found: dict[tuple[str, str], Add] = {}
    for name in checkpoint:
        rows = pq.read_table(pa.BufferReader(log.read(name)), columns=["add"])["add"].drop_null().to_pylist()
        found |= {_identity(add): add for add in map(_plain, rows) if add.get("path") is not None}
    for actions in _actions(log, numbers):
        for remove in (action["remove"] for action in actions if "remove" in action):
            found.pop(_identity(remove), None)
        found |= {_identity(add): add for add in (action["add"] for action in actions if "add" in action)}
    return list(found.values())


def replaced_vectors(log: LogStore, version: int) -> set[str]:
    """Names (`pathOrInlineDv`) of the vectors that the log still remembers to have been replaced.

    Raises:
        FileNotFoundError: an entry was cleaned away meanwhile.
    """
    checkpoint, numbers = _newest(log, version)
    found = set[str]()
    for name in checkpoint:
        removes = pq.read_table(pa.BufferReader(log.read(name)), columns=["remove"])["remove"]
        if isinstance(removes.type, pa.StructType) and removes.type.get_field_index("deletionVector") >= 0:
            found |= {*pc.struct_field(removes, ["deletionVector", "pathOrInlineDv"]).unique().drop_null().to_pylist()}
    for action in chain.from_iterable(_actions(log, numbers)):
        if vector := action.get("remove", {}).get("deletionVector"):
            found.add(vector["pathOrInlineDv"])
    return found


def _newest(log: LogStore, version: int) -> tuple[list[str], range]:
    """Parts of the newest checkpoint up to a version, and the entries behind it."""
    listing = log.since(None)
    base = max((number for number in listing.checkpoints if number <= version), default=-1)
    return listing.checkpoints.get(base, []), range(base + 1, version + 1)


def _actions(log: LogStore, numbers: range) -> Iterator[list[dict[str, Any]]]:
    """Actions of each entry; several are read at once, since a store takes its time for each."""
    with ThreadPoolExecutor(_THREADS, "derived-log") as pool:
        for text in pool.map(lambda number: log.read(entry_name(number)), numbers):
            yield [json.loads(line) for line in text.splitlines() if line]


def removed(add: Mapping[str, Any], now_ms: int, *, data_change: bool) -> dict[str, Any]:
    """Delta's `remove` of a file."""
    kept = ("path", "partitionValues", "size", "deletionVector")
    action = {name: add[name] for name in kept if add.get(name) is not None}
    return {
        "remove": action
        | {"deletionTimestamp": now_ms, "dataChange": data_change, "extendedFileMetadata": True, "partitionValues": {}}
    }


def _identity(action: Mapping[str, Any]) -> tuple[str, str]:
    vector = action.get("deletionVector")
    return action["path"], json.dumps([vector["pathOrInlineDv"], vector.get("offset")]) if vector else ""


def _plain(add: Add) -> Add:
    """Of a checkpoint: maps are lists of pairs there, and what is not set is null."""
    kept = {name: value for name, value in add.items() if value is not None}
    for name in ("partitionValues", "tags"):
        if isinstance(kept.get(name), Iterable):
            kept[name] = dict(kept[name])
    return kept
