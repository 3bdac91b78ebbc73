"""Upkeep of all tables of a lake, by one process at a time."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from filelock import Timeout

from kgs_core.config import Settings
from kgs_core.errors import PermanentError, PortError, TransientError, one_line
from kgs_core.kafka.admin import admin_of
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.discovery import UnreadTable, find_tables, refuse_unknown_tables
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.keep import end_aged
from kgs_core.model import grouped
from kgs_core.ports import Upkeep
from kgs_core.system.locks import process_lock

LOCK_FILE = "_kgs_maintenance.lock"


def maintain_lake(
    settings: Settings, only: Collection[str] = (), *, dry_run: bool = False, done: Callable[[Upkeep], None]
) -> None:
    """Maintain the tables of all topics that the configuration names, and of their dead letters.

    Kafka lists the present topics, the lake the former ones. A lake that does not exist yet, as before the first
    start, has no tables and is not created.

    Args:
        only: tables to maintain, by their path under the lake's root; empty: all.
        done: told of each table when it is finished.

    Raises:
        ConfigError: `only` names a table that is none of them.
        PermanentError: the lake cannot be listed.
        TransientError: Kafka or the store did not answer, or another maintenance runs.
        PortError: a table could not be maintained, or read; the others were.
    """
    topics = admin_of(settings).list_topics()
    lake = open_lake(settings.lake)
    unread: list[UnreadTable] = []
    specs = find_tables(settings, lake, topics, None, unread)
    by_table = grouped((spec.table, spec) for spec in specs)
    tables = dict.fromkeys(table for spec in specs for table in spec.all_tables)
    refuse_unknown_tables(only, tables, unread)
    storage = Storage.of(settings.lake)
    if not _is_there(storage):
        return
    with maintenance_lock(storage):
        if not dry_run:
            lake.remove_probes()
        problems: list[PortError] = []
        for name in [table for table in tables if not only or table in only]:
            ended, upkeep, fill_it = 0, None, by_table.get(name, [])
            with _noted(problems, name):
                if fill_it and fill_it[0].rule.keep is not None:
                    ended = end_aged(lake, settings.group, fill_it, datetime.now(UTC), dry_run=dry_run)
            with _noted(problems, name):
                upkeep = lake.maintain(name, dry_run=dry_run)
            if upkeep is not None:
                done(replace(upkeep, ended=ended))
    problems += [each.error for each in unread] if not only else []
    if problems:
        raise type(problems[0])("; ".join(str(problem) for problem in problems))


@contextmanager
def _noted(problems: list[PortError], table: str) -> Iterator[None]:
    """Note the error of a table: one that is broken must not let all others rot."""
    try:
        yield
    except PortError as e:
        problems.append(e)
    except Exception as e:  # noqa: BLE001 - of deltalake, or a file that was rewritten and vacuumed meanwhile
        problems.append(TransientError(f"table {table}: {one_line(e)}: run it again"))


def _is_there(storage: Storage) -> bool:
    """Whether the root exists; if that is unknown, True: the lock then reports what is wrong."""
    if storage.is_in_objects:
        return True
    try:
        Path(storage.root).lstat()  # of a link itself: one that leads nowhere is to be mended, as a disk not mounted
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def maintenance_lock(storage: Storage) -> Iterator[None]:
    """Lock of the one process that maintains a lake on a local disk; the end of the process releases it.

    On an object store nothing is locked. Two maintenances at once lose no rows either way: if both compact the same
    files, one is refused.

    Raises:
        TransientError: another process holds it.
        PermanentError: the root cannot be written.
    """
    if storage.is_in_objects:
        yield
        return
    try:
        Path(storage.root).stat()  # taking the lock would make what is missing
        held = process_lock(Path(storage.root, LOCK_FILE), waits=False).acquire()
    except Timeout as e:
        raise TransientError(f"lake {storage.root}: another maintenance is running: wait for its end") from e
    except OSError as e:
        raise PermanentError(f"lake {storage.root}: {e.strerror}: fix path or rights") from e
    with held:
        yield
