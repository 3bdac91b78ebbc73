"""Deletion of what Dagster itself would keep for ever: runs, and events without a run.

Dagster has half a call for runs, and none for events without a run; ticks it deletes itself (`dagster.yaml`). This
module alone goes at Dagster's own tables, where somebody has asked for it and Dagster's version is one that it was
tested with (`unknown_tables`). What is deleted is deleted in small transactions, oldest first. So a daemon that writes
meanwhile waits for moments only, and after a kill the next call goes on where this one ended.
"""

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg

from kgs_core.system.failpoints import failpoint

TESTED = ((1, 13, 27), (1, 14))
"""Versions of Dagster whose tables are known: from the first on, below the second."""
_NO_RUN = ""
_TELLING = (dg.DagsterEventType.ASSET_MATERIALIZATION.value, dg.DagsterEventType.ASSET_OBSERVATION.value)
_AT_ONCE = 500
"""Rows a transaction; also below the number of variables that any SQLite takes."""


def unknown_tables(version: str = dg.__version__) -> str | None:
    """Why Dagster's own tables are left alone, in one line; None where they are as they were tested."""
    first, end = TESTED
    if first <= tuple(int(part) for part in re.findall(r"\d+", version)[:3]) < end:
        return None
    tested = f"{'.'.join(map(str, first))} and later, below {'.'.join(map(str, end))}"
    return f"Dagster {version}: its tables are left alone, events without a run stay: kgs was tested with {tested}"


def delete_run(instance: dg.DagsterInstance, run_id: str) -> None:
    """Delete a run with all that is kept of it; its own entry last, so that what is killed half-way is found again."""
    from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable as Checks
    from dagster._core.storage.runs.schema import RunTagsTable as Tags

    with suppress(NotImplementedError):  # some stores of logs cannot
        instance.compute_log_manager.delete_logs(prefix=[run_id])
    storage: Any = instance.event_log_storage
    storage.delete_events(run_id)
    with storage.index_connection() as connection:
        connection.execute(Checks.delete().where(Checks.c.run_id == run_id))
    # SQLite keeps a file for each run, and gives no byte of it back
    if (path_for_shard := getattr(storage, "path_for_shard", None)) is not None:
        for end in ("", "-wal", "-shm"):
            Path(f"{path_for_shard(run_id)}{end}").unlink(missing_ok=True)
    failpoint("run-half-deleted")
    runs: Any = instance.run_storage
    with runs.connect() as connection:  # SQLite, as Dagster opens it, does not follow foreign keys
        connection.execute(Tags.delete().where(Tags.c.run_id == run_id))
    runs.delete_run(run_id)


def tells_how_it_is(instance: dg.DagsterInstance, run_id: str) -> bool:
    """Whether a run has the newest event of its kind of an asset or of a partition of it, or the newest of a check."""
    import sqlalchemy as db
    from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable as Checks
    from dagster._core.storage.event_log.schema import SqlEventLogStorageTable as Events

    tables = (
        (
            Events,
            (Events.c.asset_key, Events.c.dagster_event_type, Events.c.partition),
            Events.c.dagster_event_type.in_(_TELLING),
        ),
        (Checks, (Checks.c.asset_key, Checks.c.check_name), Checks.c.evaluation_event.is_not(None)),
    )
    storage: Any = instance.event_log_storage
    with storage.index_connection() as connection:
        for table, columns, tells in tables:
            mine = db.select(*columns, db.func.max(table.c.id)).where(tells & (table.c.run_id == run_id))
            for *values, newest in connection.execute(mine.group_by(*columns)).fetchall():
                same = db.and_(*(column == value for column, value in zip(columns, values, strict=True)))
                later = db.select(table.c.id).where(tells & same & (table.c.id > newest)).limit(1)
                if connection.execute(later).first() is None:
                    return True
    return False


def delete_looks(instance: dg.DagsterInstance, assets: Sequence[dg.AssetKey], before: datetime) -> int:
    """Delete what was recorded of assets without a run before then, but the newest of each kind; how many events."""
    storage: Any = instance.event_log_storage
    names, limit = [asset.to_string() for asset in assets], before.replace(tzinfo=None)
    _delete_old_checks(storage, names, limit)
    # SQLite keeps a second copy in the file of the run that there is none of
    places = (lambda: storage.run_connection(_NO_RUN), storage.index_connection)
    for connect in places:
        _delete_check_events(connect, frozenset(assets), limit)
    return max(_delete_old_events(connect, names, limit) for connect in places)


def _delete_check_events(connect: Callable[[], Any], assets: Collection[dg.AssetKey], limit: datetime) -> None:
    """They have no asset's key in a column; how a check is stands in a table of its own."""
    import sqlalchemy as db
    from dagster._core.storage.event_log.schema import SqlEventLogStorageTable as Events
    from dagster._serdes import deserialize_value

    kind = dg.DagsterEventType.ASSET_CHECK_EVALUATION.value
    old = (Events.c.run_id == _NO_RUN) & (Events.c.dagster_event_type == kind) & (Events.c.timestamp < limit)
    with connect() as connection:
        rows = connection.execute(db.select(Events.c.id, Events.c.event).where(old)).fetchall()

    def is_ours(text: str) -> bool:
        try:
            event = deserialize_value(text, dg.EventLogEntry).dagster_event
        except Exception:  # noqa: BLE001 - of whatever kind: somebody else's, by a version that writes others
            return False
        said = event.event_specific_data if event is not None else None
        return isinstance(said, dg.AssetCheckEvaluation) and said.asset_key in assets

    ours = [row[0] for row in rows if is_ours(row[1])]
    for first in range(0, len(ours), _AT_ONCE):
        with connect() as connection:
            connection.execute(Events.delete().where(Events.c.id.in_(ours[first : first + _AT_ONCE])))


def _delete_old_events(connect: Callable[[], Any], assets: Collection[str], limit: datetime) -> int:
    import sqlalchemy as db
    from dagster._core.storage.event_log.schema import AssetEventTagsTable as EventTags
    from dagster._core.storage.event_log.schema import SqlEventLogStorageTable as Events

    ours = (Events.c.run_id == _NO_RUN) & Events.c.asset_key.in_(assets)
    newest = db.select(db.func.max(Events.c.id)).where(ours).group_by(Events.c.asset_key, Events.c.dagster_event_type)
    with connect() as connection:
        kept = [row[0] for row in connection.execute(newest)]
    old = db.select(Events.c.id).where(ours & (Events.c.timestamp < limit) & Events.c.id.not_in(kept))

    def delete(connection: Any, ids: list[int]) -> None:
        with suppress(db.exc.OperationalError):  # of SQLite's two places one has no such table
            connection.execute(EventTags.delete().where(EventTags.c.event_id.in_(ids)))
        connection.execute(Events.delete().where(Events.c.id.in_(ids)))

    return _in_parts(connect, old.order_by(Events.c.id), delete)


def _delete_old_checks(storage: Any, assets: Collection[str], limit: datetime) -> None:
    import sqlalchemy as db
    from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable as Checks

    ours = (Checks.c.run_id == _NO_RUN) & Checks.c.asset_key.in_(assets)
    newest = db.select(db.func.max(Checks.c.id)).where(ours).group_by(Checks.c.asset_key, Checks.c.check_name)
    with storage.index_connection() as connection:
        kept = [row[0] for row in connection.execute(newest)]
    old = db.select(Checks.c.id).where(ours & (Checks.c.evaluation_event_timestamp < limit) & Checks.c.id.not_in(kept))

    def delete(connection: Any, ids: list[int]) -> None:
        connection.execute(Checks.delete().where(Checks.c.id.in_(ids)))

    _in_parts(storage.index_connection, old.order_by(Checks.c.id), delete)


def _in_parts(connect: Callable[[], Any], old: Any, delete: Callable[[Any, list[int]], None]) -> int:
    """Delete the rows whose ids a query gives, some at a time; returns how many they were."""
    count = 0
    while True:
        with connect() as connection:
            ids = [row[0] for row in connection.execute(old.limit(_AT_ONCE))]
            if ids:
                delete(connection, ids)
        if not ids:
            return count
        count += len(ids)
        failpoint("looks-half-deleted")


def days_ago(days: float, now: float) -> datetime:
    """So long before `now`, seconds since 1970."""
    return datetime.fromtimestamp(now - days * 86_400, UTC)
