"""Keeps a Delta table fast and small while consumers commit to it: compaction, checkpoint, old log entries, vacuum."""

import math
import time
from collections.abc import Callable, Sequence
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from kgs_core.errors import one_line
from kgs_core.lake.delta.delta_optimize import compact
from kgs_core.lake.delta.pace import Tries
from kgs_core.lake.delta.whole_table import flush_from, opened_table
from kgs_core.lake.files.intent_store import IntentStore
from kgs_core.lake.files.storage import Storage
from kgs_core.ports import Upkeep

MIN_RETENTION_H = 24
RETENTION_H = 168
"""How long a file that belongs to no version is kept, where its table does not say it."""
_RETENTION = "delta.deletedFileRetentionDuration"
_HOURS = {"hour": 1.0, "day": 24.0, "week": 168.0}


def maintain_table(storage: Storage, name: str, *, dry_run: bool = False) -> Upkeep | None:
    """Compact, write a checkpoint, clean expired log entries, remove old intents and files that belong to no version.

    Every step may run beside consumers: they append, and an append conflicts with none of these. Files younger than
    the retention are left alone, since a consumer may hold one whose commit is still to come.

    Raises:
        UnsafeError: the log is broken.
        TransientError: the store did not answer.
    """
    began = time.monotonic()
    table = _load(storage, name)
    if table is None:
        return None
    before = _size(table)
    problems = [] if dry_run else _compact(storage, name)
    table = _load(storage, name) or table
    hours = retention_h(table)
    problems += [] if dry_run else _remove_old_intents(storage, name)
    removed, removed_bytes, problem = _vacuum(storage, name, table, hours, dry_run=dry_run)
    problems += [problem] if problem else []
    (files, sizes), seconds = zip(before, _size(table), strict=True), time.monotonic() - began
    return Upkeep(name, files, sizes, removed, removed_bytes, seconds, "; ".join(problems) or None)


def _load(storage: Storage, name: str) -> DeltaTable | None:
    tries = Tries()
    while tries.are_left:
        with tries.one():
            return opened_table(storage, name)
    raise tries.given_up(name, "looking at it") from tries.problem


def _size(table: DeltaTable) -> tuple[int, int]:
    sizes = pa.table(table.get_add_actions())["size_bytes"].to_pylist()
    return len(sizes), sum(sizes)


def _compact(storage: Storage, name: str) -> list[str]:
    """The steps that only rearrange. One that fails is reported and changes nothing: the next run does it."""
    problems: list[str] = []
    steps: dict[str, Callable[[DeltaTable], object]] = {
        "compaction": compact,
        "checkpoint": lambda table: table.create_checkpoint(),
        "log clean-up": lambda table: table.cleanup_metadata(),
    }
    for what, step in steps.items():
        table = _load(storage, name)
        if table is None:
            return [*problems, f"{what}: the table is gone"]
        try:
            since = table.version()
            step(table)
            flush_from(storage, name, since)
        except Exception as e:  # noqa: BLE001 - as above
            problems.append(f"{what}: {one_line(e)}")
    return problems


def _remove_old_intents(storage: Storage, name: str) -> list[str]:
    """Those that writers left by which nobody removed; `combined_commit` passes them over long before."""
    try:
        store = IntentStore(storage, name)
        store.remove([intent for intent, age_s in store.ages().items() if age_s > MIN_RETENTION_H * 3600])
    except Exception as e:  # noqa: BLE001 - as above
        return [f"intents: {one_line(e)}"]
    return []


def retention_h(table: DeltaTable) -> float:
    """How long files that belong to no version are kept: as the table's own property says, if that is a day or more.

    Less would take files of batches in flight. Infinite where the property is not understood.
    """
    parts = table.metadata().configuration.get(_RETENTION, "").lower().removeprefix("interval ").split()
    if not parts:
        return RETENTION_H
    try:
        number, unit = parts
        hours = float(number) * _HOURS[unit.removesuffix("s")]
    except (ValueError, KeyError):
        return math.inf
    return hours if hours >= MIN_RETENTION_H else RETENTION_H


def _vacuum(
    storage: Storage, name: str, table: DeltaTable, hours: float, *, dry_run: bool
) -> tuple[int, int, str | None]:
    """Number and bytes of the files removed (in a dry run: to be removed), and why none were."""
    if hours == math.inf:
        return 0, 0, f"vacuum: {_RETENTION} = {table.metadata().configuration[_RETENTION]} is not understood"

    def vacuum(*, look: bool) -> list[str]:
        # Without `full` it would leave the files that were never committed, which is what killed consumers leave.
        # Its own check knows the table's property as it is; ours is made above.
        files: list[str] = table.vacuum(math.ceil(hours), dry_run=look, enforce_retention_duration=False, full=True)
        return files

    try:
        found = vacuum(look=True)
        columns = table.metadata().partition_columns
        if inside := sorted(path for path in found if not _is_in_place(path, columns)):
            return 0, 0, f"vacuum: {inside[0]} and others in subfolders are not of kgs: move them or vacuum by hand"
        bytes_ = _bytes_of(storage, name, found)
        return (len(found), bytes_, None) if dry_run else (len(vacuum(look=False)), bytes_, None)
    except Exception as e:  # noqa: BLE001 - as above
        return 0, 0, f"vacuum: {one_line(e)}"


def _is_in_place(path: str, partition_columns: Sequence[str]) -> bool:
    """Whether a file lies where kgs, and compaction, write: one folder for each partition column."""
    *folders, _ = path.split("/")
    names = [unquote(folder.split("=", 1)[0]) for folder in folders if "=" in folder]
    return len(names) == len(folders) and [*partition_columns] == names


def _bytes_of(storage: Storage, name: str, files: list[str]) -> int:
    infos = storage.filesystem().get_file_info([storage.path(name, file) for file in files]) if files else []
    return sum(info.size or 0 for info in infos)
