"""Tables on a local disk whose machine may lose its power: what is put on the disk in time, and what is found torn.

With `lake.fsync`, a file and its name are on the disk before an entry names it, and an entry before its commit counts
and before another one follows it (`log_store`). deltalake puts nothing on the disk: what it makes (a new table,
compaction, a checkpoint) is put there by kgs a moment later, and before the next commit.

Without it, the system writes what it likes first, and all of it within a minute. So a table is looked at as it is
opened: a state is read of whole entries alone (`delta_log`), and the files of the newest minute must be whole.
"""

import os
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from kgs_core.errors import UnsafeError
from kgs_core.lake.delta.delta_log import CURE, LogBrokenError, added_files, load_transactions
from kgs_core.lake.delta.log_store import CHECKPOINT, ENTRY, LAST_CHECKPOINT, LOG_FOLDER, entry_name
from kgs_core.lake.files.storage import Storage
from kgs_core.system.files import flush

RECENT_MS = 60_000
"""How far before the newest one files are looked at: the system writes what is older than 30 s."""
_MAGIC = b"PAR1"


def opened_table(storage: Storage, name: str) -> DeltaTable | None:
    """The table as it is now; None: it is not there.

    Raises:
        UnsafeError: it lies on a local disk, and is torn.
    """
    uri, options = storage.uri(name), storage.delta_options()
    try:  # not `is_deltatable`: it holds Python's lock until the store answers, and heartbeats would stop
        handle = DeltaTable(uri, storage_options=options)
    except TableNotFoundError:
        return None
    except Exception:
        if not storage.is_in_objects:
            load_transactions(storage, name)  # says what is broken, in words
        raise
    if not storage.is_in_objects:
        load_transactions(storage, name)  # deltalake takes an empty entry for one
        check_files(storage, name, handle)
    return handle


def check_files(storage: Storage, name: str, table: DeltaTable) -> None:
    """Refuse a table on a local disk of whose newest files one is not there as it was committed.

    Raises:
        UnsafeError: names the file, and the entry that added it.
    """
    files = None if storage.is_in_objects else pa.table(table.get_add_actions())
    if files is None or not files.num_rows:
        return
    made = files["modification_time"].cast(pa.int64())
    recent = files.filter(pc.greater_equal(made, pc.max(made).as_py() - RECENT_MS))
    for path, size in zip(recent["path"].to_pylist(), recent["size_bytes"].to_pylist(), strict=True):
        if not _is_whole(storage.path(name, unquote(path)), size):
            where = f"file {path}, which {_entry_with(storage, name, path, table.version())} added,"
            raise UnsafeError(f"table {name}: {where} is missing or not whole: {CURE}")


def _is_whole(path: str, size: int) -> bool:
    try:
        with open(path, "rb") as file:
            return os.pread(file.fileno(), 4, size - 4) == _MAGIC
    except OSError:
        return False


def _entry_with(storage: Storage, name: str, path: str, newest: int) -> str:
    """The entry that adds a file; or the newest one not there whole, which is where to put the log back to, too."""
    log = Path(storage.uri(name), LOG_FOLDER)
    for entry in map(entry_name, range(newest, -1, -1)):
        try:
            is_this = path in added_files((log / entry).read_bytes(), entry)
        except (FileNotFoundError, LogBrokenError):
            is_this = True
        if is_this:
            return f"log entry {entry}"
    return "an entry that is gone"


def flush_from(storage: Storage, name: str, version: int) -> None:
    """Put what deltalake has made of a table from an entry on, with all folders above it, on the disk, for `fsync`."""
    if not storage.fsync:
        return
    log = Path(storage.uri(name), LOG_FOLDER)
    new = sorted(file for file in os.listdir(log) if file >= f"{version:020d}")  # sorts before _last_checkpoint
    entries = [file for file in new if ENTRY.fullmatch(file)]
    for path in (path for file in entries for path in added_files((log / file).read_bytes(), file)):
        storage.flush(name, unquote(path))
    checkpoints = [file for file in new if CHECKPOINT.fullmatch(file) or file == LAST_CHECKPOINT]
    flush(*(log / file for file in (*entries, *checkpoints)))
    root = Path(os.path.abspath(storage.root))
    flush(log, *(folder for folder in log.absolute().parents if folder.is_relative_to(root.parent)))
