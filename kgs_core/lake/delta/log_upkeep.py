"""Checkpoints made beside the commits, so that a table that nobody maintains stays quick to open.

Whoever commits an entry whose number is a multiple of the interval makes a checkpoint of it, in a thread of its own:
no commit waits, and every number has one maker, though it may die and leave the work to the maker of the next. Every
`CLEAN_EVERY`th also removes what the table's own properties say is expired. Neither is needed for a commit: a failure
is of no consequence, and `kgs maintain` does the same. One at a time in a process.
"""

import threading
from contextlib import suppress

from deltalake import DeltaTable

from kgs_core.lake.delta.whole_table import flush_from
from kgs_core.lake.files.storage import Storage

CLEAN_EVERY = 10
_at_work = threading.Lock()


def keep_short(storage: Storage, name: str, version: int, interval: int) -> None:
    """Start the upkeep that entry `version`, committed by this process, makes due."""
    if version % interval or not _at_work.acquire(blocking=False):
        return
    cleans = version % (interval * CLEAN_EVERY) == 0
    try:
        threading.Thread(target=_keep, args=(storage, name, cleans), name="log-upkeep", daemon=True).start()
    except RuntimeError:  # no more threads: the next one does it
        _at_work.release()


def _keep(storage: Storage, name: str, cleans: bool) -> None:  # noqa: FBT001
    try:
        with suppress(Exception):  # of the store, or of a table that is gone: the next one does it
            table = DeltaTable(storage.uri(name), storage_options=storage.delta_options())
            table.create_checkpoint()
            flush_from(storage, name, table.version())
            if cleans:
                table.cleanup_metadata()
    finally:
        _at_work.release()
