"""The versions of all application ids, as of exactly one entry of a Delta log.

deltalake answers for one application id at a time, and replays the log for each. Here the log is read once, and after
that only its new entries.

1. A `LogState` belongs to one number and one *file* under that number: `stamp` tells that file from any other. Where
   the table was deleted and made again, its old state is of no use, whatever number the new log has got to.
2. The next state is made of the entries right behind, without a gap, and only if the known entry is still there with
   its stamp. Anything else (cleaned away under a process that was stopped, a table made again, a listing that raced
   with commits) is answered by reading anew.
3. Who has just lost a number knows that there is an entry behind its state, and asks for that and the next few by their
   names, without a listing. Sound only a moment after a listing: later, a name without a file may be a hole.
4. An entry that changes metadata or protocol ends the chain: what follows must be looked at as a whole, for the table
   may not let the guarantee hold any more. So does one that no writer of kgs made, where entries are asked for by their
   names: it may be vacuum's, and what is known of files is worth nothing then, whatever the clocks say.
"""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kgs_core.errors import PermanentError, one_line
from kgs_core.lake.delta.log_store import (
    LAST_CHECKPOINT,
    LogBrokenError,
    LogListing,
    LogStore,
    entry_name,
    last_checkpoint,
    log_store,
)
from kgs_core.lake.delta.pace import Tries
from kgs_core.lake.files.storage import Storage

CURE = "restore it, or put the log back to before it (docs/reliability.md: after a power cut)"
_THREADS = 32


@dataclass(frozen=True, slots=True)
class LogState:
    """Versions as of one entry of the log.

    Attributes:
        stamp: what its file is told by.
        apps: application id -> version.
        changed: number of the last entry, as far as is known, that holds metadata or protocol; or of the checkpoint
            that the reading began at.
        maker: the writer that made the entry; empty where it is not known.
        ours: number of the newest entry, as far as is known, that a writer of kgs made; or of the checkpoint.
    """

    version: int
    stamp: str
    apps: Mapping[str, int]
    changed: int
    maker: str = ""
    batches: int = 0
    ours: int = -1

    def followed_by(self, version: int, stamp: str, apps: Mapping[str, int], maker: str, batches: int) -> "LogState":
        """The state after one more entry, which changes neither metadata nor protocol."""
        ours = version if maker else self.ours
        return LogState(version, stamp, {**self.apps, **apps}, self.changed, maker, batches, ours)


@dataclass(frozen=True, slots=True)
class _Entry:
    apps: dict[str, int]
    changes_table: bool
    maker: str
    batches: int


def read_state(log: LogStore) -> LogState | None:
    """The newest state, from a checkpoint on; None where there is no log.

    Raises:
        LogBrokenError: the log has a hole or a broken entry, or seemed to have, since others changed it meanwhile.
    """
    noted = last_checkpoint(log.read)
    listing = log.since(noted)
    if noted is not None and noted not in listing.checkpoints:
        listing = log.since(None)
    base = max(listing.checkpoints, default=-1)
    if noted is not None and noted > base:
        raise LogBrokenError(
            f"checkpoint {noted:020d}.checkpoint.parquet, which {LAST_CHECKPOINT} names, is missing: {CURE}"
        )
    apps: dict[str, int] = {}
    for name in listing.checkpoints.get(base, []):
        apps |= _of_checkpoint(log.read(name), name)
    tail = sorted(version for version in listing.stamps if version > base)
    if not tail and base < 0:
        return None
    if tail != list(range(base + 1, base + 1 + len(tail))):
        missing = next(version for version in range(base + 1, tail[-1]) if version not in listing.stamps)
        raise LogBrokenError(f"log entry {entry_name(missing)} is missing, and later ones are not: {CURE}")
    changed, ours = max(base, 0), base
    for version, entry in _entries(log, tail):
        apps |= entry.apps
        changed = version if entry.changes_table else changed
        ours = version if entry.maker else ours
    newest = tail[-1] if tail else base
    if newest not in listing.stamps:  # a checkpoint whose own entry was cleaned away: a number without a stamp
        listing.stamps[newest] = ""
    return LogState(newest, listing.stamps[newest], apps, changed, ours=ours)


def next_state(log: LogStore, state: LogState) -> LogState | None:
    """The newest state by what came after `state`; None where the log must be read anew.

    Raises:
        LogBrokenError: an entry is broken.
    """
    listing: LogListing = log.since(state.version)
    if not state.stamp or listing.stamps.get(state.version) != state.stamp:
        return None
    new = sorted(version for version in listing.stamps if version > state.version)
    if new != list(range(state.version + 1, state.version + 1 + len(new))):
        return None
    try:
        entries = _entries(log, new)
    except FileNotFoundError:  # cleaned away between the listing and the reading
        return None
    if any(entry.changes_table for _, entry in entries):
        return None
    for number, entry in entries:
        state = state.followed_by(number, listing.stamps[number], entry.apps, entry.maker, entry.batches)
    return state


def followed(log: LogStore, state: LogState, ahead: int) -> LogState | None:
    """The state after the entries right behind `state`, itself where there is none; None: read the log anew.

    `ahead`: how many entries there may be, a guess; asked for at once.

    Raises:
        LogBrokenError: an entry is broken.
        Exception: the store did not answer.
    """
    while True:
        asked = range(state.version + 1, state.version + 1 + ahead)
        for number, found in zip(asked, _readers().map(lambda n: _entry_if_there(log, n), asked), strict=True):
            if found is None:
                break
            entry = _parsed(found[0], entry_name(number))
            if entry.changes_table or not entry.maker:
                return None
            state = state.followed_by(number, found[1], entry.apps, entry.maker, entry.batches)
        if state.version < asked[-1]:
            return state
        ahead *= 2


def _entry_if_there(log: LogStore, version: int) -> tuple[bytes, str] | None:
    try:
        return log.entry(version)
    except FileNotFoundError:
        return None


def load_transactions(storage: Storage, table: str) -> dict[str, int]:
    """Version of every application id in the table's log; empty where there is no table.

    Raises:
        UnsafeError: an entry that should be there is missing or broken; or its path is none that a table can have.
        PermanentError: the folder may not be read, or has files where folders should be.
        TransientError: the store did not answer.
    """
    tries = Tries()
    while tries.are_left:
        # While others commit, a listing may show an entry without the one before it, or one that is cleaned away.
        with tries.one():
            state = read_state(log_store(storage, table))
            return dict(state.apps) if state else {}
    if isinstance(tries.problem, (PermissionError, IsADirectoryError, NotADirectoryError)):
        raise PermanentError(f"table {table}: {one_line(tries.problem)}: give the right to read it, or move it away")
    raise tries.given_up(table, "reading its log") from tries.problem


def _entries(log: LogStore, versions: list[int]) -> list[tuple[int, _Entry]]:
    """Entries in order, read at the same time."""
    names = [entry_name(version) for version in versions]
    texts = map(log.read, names) if len(names) < 2 else _readers().map(log.read, names)  # noqa: PLR2004
    return [(version, _parsed(text, entry_name(version))) for version, text in zip(versions, texts, strict=True)]


@cache
def _readers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, "log-reader")


def _of_checkpoint(data: bytes, name: str) -> dict[str, int]:
    try:
        column = pq.read_table(pa.BufferReader(data), columns=["txn"])["txn"].drop_null()
        return {str(txn["appId"]): int(txn["version"]) for txn in column.to_pylist() if txn["appId"] is not None}
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as e:
        raise LogBrokenError(f"checkpoint {name} cannot be read: {CURE}") from e


def _actions(text: bytes, name: str) -> list[Any]:
    try:
        actions = [json.loads(line) for line in text.splitlines() if line]
    except (ValueError, RecursionError) as e:
        raise LogBrokenError(f"log entry {name} is not whole: {CURE}") from e
    if not actions:
        raise LogBrokenError(f"log entry {name} is empty: {CURE}")
    if not all(isinstance(action, dict) for action in actions):
        raise LogBrokenError(f"log entry {name} is another kind of JSON: {CURE}")
    return actions


def added_files(text: bytes, name: str) -> list[str]:
    """Paths, as they are written there, of the files that an entry adds.

    Raises:
        LogBrokenError: the entry is not whole.
    """
    return [str(action["add"]["path"]) for action in _actions(text, name) if "add" in action]


def removed_files(text: bytes, name: str) -> list[str]:
    """Likewise, of the files that it removes."""
    return [str(action["remove"]["path"]) for action in _actions(text, name) if "remove" in action]


def _parsed(text: bytes, name: str) -> _Entry:
    actions = _actions(text, name)
    try:
        apps = {str(a["txn"]["appId"]): int(a["txn"]["version"]) for a in actions if "txn" in a}
        made: dict[str, Any] = next((a["commitInfo"].get("kgs") or {} for a in actions if "commitInfo" in a), {})
        changes_table = any("metaData" in a or "protocol" in a for a in actions)
        return _Entry(apps, changes_table, str(made.get("writer", "")), int(made.get("batches", 0)))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as e:
        raise LogBrokenError(f"log entry {name} is another kind of JSON: {CURE}") from e
