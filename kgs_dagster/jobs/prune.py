"""Deletes old runs and old looks at the lake: Dagster itself keeps every run and every event for ever."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from kgs_dagster.assets.lake import lake_layout
from kgs_dagster.launch import GROUP, ROLE
from kgs_dagster.run_process import DAY_S, ENDED, MAX_RUNTIME, claim_run
from kgs_dagster.settings import GroupConfig

_NO_RUN = ""


class PruneConfig(dg.Config):
    """Retention of what is over."""

    keep_days: float = Field(default=14, gt=0, description="Runs that ended as they should.")
    keep_failed_days: float = Field(default=60, gt=0, description="Runs that failed.")
    keep_looks_days: float = Field(
        default=3, gt=0, description="What the lake sensor records: up to one event a table and minute, 4 to 8 KB each."
    )


def prune_runs_job(group: GroupConfig, clock: Callable[[], float] = time.time) -> dg.JobDefinition:
    """Old runs and looks of this group, and of nobody else; the assets' history goes with them.

    Args:
        group: whose runs.
        clock: seconds since 1970.
    """

    @dg.op(name=f"prune_runs{group.suffix}", out=dg.Out(dg.Nothing))
    def prune_runs(context: dg.OpExecutionContext, config: PruneConfig) -> None:
        claim_run(context.instance, context.run_id)
        now = clock()
        failed = [dg.DagsterRunStatus.FAILURE]
        others = [status for status in ENDED if status not in failed]
        count = 0
        for statuses, days in ((others, config.keep_days), (failed, config.keep_failed_days)):
            old = dg.RunsFilter(tags={GROUP: group.name}, statuses=statuses, updated_before=_days_ago(days, now))
            for run_id in context.instance.get_run_ids(old):
                delete_run(context.instance, run_id)
                count += 1
        seen = [key for asset in lake_layout(group) for key in (asset.table, *asset.topics)]
        looks = delete_looks(context.instance, seen, _days_ago(config.keep_looks_days, now))
        context.add_output_metadata({"runs": count, "looks": looks})

    @dg.job(
        name=f"prune_runs_job{group.suffix}",
        description=f"Deletes runs of group {group.name} that ended long ago, with their events and logs, and what the "
        "lake sensor recorded long ago.",
        executor_def=dg.in_process_executor,
        tags={GROUP: group.name, ROLE: "prune", MAX_RUNTIME: str(DAY_S)},
    )
    def job() -> None:
        prune_runs()

    return job


def delete_looks(instance: dg.DagsterInstance, tables: Sequence[dg.AssetKey], before: datetime) -> int:
    """Delete what was recorded of tables without a run; returns how many events that were."""
    # Dagster has no call for this: its pinned version is what makes it safe, and a test
    from dagster._core.storage.event_log.schema import SqlEventLogStorageTable as Events

    storage: Any = instance.event_log_storage
    old = (
        (Events.c.run_id == _NO_RUN)
        & Events.c.asset_key.in_([table.to_string() for table in tables])
        & (Events.c.timestamp < before.replace(tzinfo=None))
    )
    count = 0
    # SQLite keeps a second copy in the file of the run that there is none of
    for connect in (lambda: storage.run_connection(_NO_RUN), storage.index_connection):
        with connect() as connection:
            count = max(count, connection.execute(Events.delete().where(old)).rowcount)
    return count


def _days_ago(days: float, now: float) -> datetime:
    return datetime.fromtimestamp(now - days * DAY_S, UTC)


def delete_run(instance: dg.DagsterInstance, run_id: str) -> None:
    """Delete a run with all that is kept of it; its own entry last, so that what is killed half-way is found again."""
    with suppress(NotImplementedError):  # some stores of logs cannot
        instance.compute_log_manager.delete_logs(prefix=[run_id])
    storage = instance.event_log_storage
    storage.delete_events(run_id)
    # SQLite keeps a file for each run, and gives no byte of it back
    if (path_for_shard := getattr(storage, "path_for_shard", None)) is not None:
        for end in ("", "-wal", "-shm"):
            Path(f"{path_for_shard(run_id)}{end}").unlink(missing_ok=True)
    instance.run_storage.delete_run(run_id)
