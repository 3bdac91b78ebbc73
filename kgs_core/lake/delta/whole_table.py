"""Tables on a local disk whose machine may lose its power: what is put on the disk in time, and what is found torn.

With `lake.fsync`, a file and its name are on the disk before an entry names it, and an entry before its commit counts
and before another one follows it (`log_store`). deltalake puts nothing on the disk: what it makes (a new table,
compaction, a checkpoint) is put there by kgs a moment later, and before the next commit.

Without it, the system writes what it likes first, and all of it within a minute. So a table is looked at as it is
opened: a state is read of whole entries alone (`delta_log`), and the files of the newest minute must be whole.
"""

import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from kgs_core.errors import TransientError, UnsafeError, one_line
from kgs_core.lake.delta.delta_log import CURE, added_files, load_transactions
from kgs_core.lake.delta.log_store import CHECKPOINT, ENTRY, LAST_CHECKPOINT, LOG_FOLDER, LogBrokenError, entry_name
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
        TransientError: it cannot be said now.
    """
    if storage.is_in_objects or _torn(storage, name, table) is None:
        return
    table.update_incremental()  # others may have removed that file since: compaction, and a vacuum
    if (path := _torn(storage, name, table)) is not None:
        where = f"file {path}, which {_entry_with(storage, name, path, table.version())} added,"
        raise UnsafeError(f"table {name}: {where} is missing or not whole: {CURE}")


def _torn(storage: Storage, name: str, table: DeltaTable) -> str | None:
    """One of the newest files that is not there as it was committed."""
    files = pa.table(table.get_add_actions())
    if not files.num_rows:
        return None
    made = files["modification_time"].cast(pa.int64())
    recent = files.filter(pc.greater_equal(made, pc.max(made).as_py() - RECENT_MS))
    for path, size in zip(recent["path"].to_pylist(), recent["size_bytes"].to_pylist(), strict=True):
        if not _is_whole(storage.path(name, unquote(path)), size):
            return str(path)
    return None


def _is_whole(path: str, size: int) -> bool:
    try:
        with open(path, "rb") as file:
            return os.pread(file.fileno(), 4, max(size - 4, 0)) == _MAGIC
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return False
    except PermissionError:  # another user's, who lets nobody read: who appends need not
        return os.stat(path).st_size == size
    except OSError as e:  # no file can be opened any more, or a disk of another machine is away
        raise TransientError(f"{path}: {one_line(e)}") from e


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
    for file in (file for file in new if ENTRY.fullmatch(file)):
        with suppress(FileNotFoundError):  # expired
            added = added_files((log / file).read_bytes(), file)
            flush(log / file)
            for path in added:
                with suppress(FileNotFoundError):  # removed since, and vacuumed
                    storage.flush(name, unquote(path))
    for file in (file for file in new if CHECKPOINT.fullmatch(file) or file == LAST_CHECKPOINT):
        with suppress(FileNotFoundError):
            flush(log / file)
    root = Path(os.path.abspath(storage.root))
    flush(log, *(folder for folder in log.absolute().parents if folder.is_relative_to(root)))
    with suppress(PermissionError):  # who may not read it finds the root there
        flush(root.parent)
