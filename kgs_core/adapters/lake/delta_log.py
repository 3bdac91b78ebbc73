"""Reads a Delta log for what deltalake cannot list: every application id with its version."""

import json
import re
import time
from typing import Any

import pyarrow.parquet as pq
from pyarrow import fs

from kgs_core.adapters.lake.storage import Storage
from kgs_core.errors import PermanentError, TransientError, one_line

TRIES = 5
_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


def load_transactions(storage: Storage, table: str) -> dict[str, int]:
    """Version of every application id in the table's log; empty where there is no table.

    Raises:
        PermanentError: an entry that should be there is missing or broken.
        TransientError: the store did not answer.
    """
    for attempt in range(TRIES):
        try:
            return _load(storage, table)
        except (OSError, PermanentError) as e:
            # While others commit, a listing may show an entry without the one before it, or one that is cleaned away.
            problem = e
            time.sleep(0.02 * 2**attempt)
    if isinstance(problem, PermanentError):
        raise problem
    raise TransientError(f"table {table}: {one_line(problem)}") from problem


def _load(storage: Storage, table: str) -> dict[str, int]:
    filesystem = storage.filesystem()
    folder = storage.path(table, "_delta_log")
    listing = filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    names = {info.base_name: info.path for info in listing}
    checkpoints = sorted(int(m.group(1)) for name in names if (m := _CHECKPOINT.fullmatch(name)))
    entries = sorted(int(m.group(1)) for name in names if (m := _ENTRY.fullmatch(name)))
    versions: dict[str, int] = {}
    base = checkpoints[-1] if checkpoints else -1
    if checkpoints:
        versions |= _checkpoint(filesystem, names[f"{base:020d}.checkpoint.parquet"])
    tail = [version for version in entries if version > base]
    if tail != list(range(base + 1, base + 1 + len(tail))):
        raise PermanentError(f"table {table}: its log has a hole after version {base}: restore _delta_log")
    for version in tail:
        versions |= _entry(filesystem, names[f"{version:020d}.json"], table)
    return versions


def _checkpoint(filesystem: Any, path: str) -> dict[str, int]:
    column = pq.read_table(path, filesystem=filesystem, columns=["txn"])["txn"].drop_null()
    return {txn["appId"]: txn["version"] for txn in column.to_pylist() if txn["appId"] is not None}


def _entry(filesystem: Any, path: str, table: str) -> dict[str, int]:
    with filesystem.open_input_stream(path) as stream:
        lines = stream.read().splitlines()
    try:
        actions = [json.loads(line) for line in lines if line]
    except ValueError as e:
        raise PermanentError(f"table {table}: log entry {path.rpartition('/')[2]} is not whole: restore it") from e
    return {a["txn"]["appId"]: a["txn"]["version"] for a in actions if "txn" in a}
