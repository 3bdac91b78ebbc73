"""Automation by the clock: the look at the lake, upkeep, audit, the end of runs that died.

The sensors of the control loop live in `sensors`.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from kgs_core.errors import PortError
from kgs_dagster.assets.lake import Seen, lake_events
from kgs_dagster.assets.side_tables import beside_events
from kgs_dagster.checks.lake import results_to_repeat
from kgs_dagster.jobs.lake import catalog_job, lake_audit_job, lake_maintenance_job
from kgs_dagster.jobs.prune import prune_runs_job
from kgs_dagster.jobs.shape import Job
from kgs_dagster.launch import DagsterFleet
from kgs_dagster.run_process import NOT_ENDED
from kgs_dagster.settings import GroupConfig
from kgs_dagster.turn import Turn

if TYPE_CHECKING:
    from kgs_core.lake.topics.stats import LakeSnapshot, LakeView

LOOK_EVERY_S = 60
CLOSE_EVERY_S = 30
MAINTENANCE_CRON = "17 * * * *"
"""Consumers may commit several files a second: a table that is left alone for a day is slow to open."""
AUDIT_CRON = "37 3 * * *"
CATALOG_CRON = "4,19,34,49 * * * *"
PRUNE_CRON = "7 4 * * *"
Look = Callable[[], "LakeSnapshot"]
_CURSOR = TypeAdapter(dict[str, Seen])


def scheduled_jobs(group: GroupConfig) -> dict[str, Job]:
    """The jobs that go by the clock, by the times at which they do, UTC."""
    registered = catalog_job(group)
    return {
        MAINTENANCE_CRON: lake_maintenance_job(group),
        AUDIT_CRON: lake_audit_job(group),
        PRUNE_CRON: prune_runs_job(group),
        **({CATALOG_CRON: registered} if registered is not None else {}),
    }


def schedule(job: Job, cron: str) -> dg.ScheduleDefinition:
    """Runs a job by the clock; a run that lasts longer than the interval is joined by no second one."""

    def execution(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        before = context.instance.get_run_records(dg.RunsFilter(job_name=job.name, statuses=list(NOT_ENDED)), limit=1)
        return dg.SkipReason(f"run {before[0].dagster_run.run_id} is in progress") if before else dg.RunRequest()

    return dg.ScheduleDefinition(
        name=job.name.replace("_job", "_schedule", 1),
        description=f"{job.description} UTC.",
        job=job,
        cron_schedule=cron,
        execution_fn=execution,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )


def lake_sensor(
    group: GroupConfig,
    look: Look | None = None,
    clock: Callable[[], float] = time.time,
    audit: Job | None = None,
) -> dg.SensorDefinition:
    """Looks at every table once a minute, and records what has changed. Needs no run: nothing is computed.

    Args:
        look: sees it; None: as `kgs status` does.
        audit: asked for once, when there is something to audit: else its checks would say nothing until the night.
    """
    see = look or _lake_look(group)
    turn = Turn()

    @dg.sensor(
        name=f"lake_sensor{group.suffix}",
        jobs=[audit] if audit is not None else None,
        minimum_interval_seconds=LOOK_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Records rows, positions, lag, size and files of every table as its asset's metadata.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        with turn.taken() as why:
            if why:
                return dg.SkipReason(why)
            if hung := turn.hung:
                context.log.error(f"{hung}: this one goes past it")
            snapshot = see()
        before, now = _load_seen(context.cursor), clock()
        events, after = lake_events(group, snapshot, before, now)
        beside, sides = beside_events(group, snapshot, before, now)
        events, after = [*events, *beside], {**after, **sides}
        summary = "; ".join(snapshot.problems) or f"{len(snapshot.tables)} tables seen, {len(events)} assets recorded"
        if snapshot.problems:
            context.log.warning(summary)
        cursor = json.dumps({name: asdict(seen) for name, seen in after.items()})
        repeated = results_to_repeat(group, context.instance)
        if audit is not None and _is_first(context.instance, audit, events):
            first = dg.RunRequest(run_key=f"{group.name}/first-audit", job_name=audit.name)
            return dg.SensorResult(asset_events=[*events, *repeated], cursor=cursor, run_requests=[first])
        return dg.SensorResult(asset_events=[*events, *repeated], cursor=cursor, skip_reason=dg.SkipReason(summary))

    return sensor


def _is_first(instance: dg.DagsterInstance, audit: Job, events: Sequence[object]) -> bool:
    if not any(isinstance(event, dg.AssetMaterialization) for event in events):
        return False
    return not instance.get_run_records(dg.RunsFilter(job_name=audit.name), limit=1)


def lost_runs_sensor(group: GroupConfig) -> dg.SensorDefinition:
    """Marks runs as over that nobody else would: their machine went down, and they with it."""

    @dg.sensor(
        name=f"lost_runs_sensor{group.suffix}",
        minimum_interval_seconds=CLOSE_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Fails runs whose process is gone without an event, so that they are restarted, and kills "
        "consumers that ignore a request to end. In a cluster, run monitoring and Kubernetes do most of this, and the "
        "sensor deletes the Jobs of finished runs.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        fleet = DagsterFleet(context.instance, group)
        try:
            lost, late = fleet.close_lost_runs(), fleet.delete_late_jobs()
        except PortError as e:
            return dg.SkipReason(str(e))
        for run_id in lost:
            context.log.warning(f"run {run_id} marked as over: its process is gone")
        for run_id in late:
            context.log.warning(f"the Job of run {run_id} is deleted: its run is over")
        return dg.SkipReason(f"marked as over: {', '.join(lost)}" if lost else "every run that counts as running lives")

    return sensor


def _lake_look(group: GroupConfig) -> Look:
    """Keeps what it has read of the tables' logs from look to look; a restart costs one slower look."""
    views: list[LakeView] = []

    def look() -> "LakeSnapshot":
        from kgs_core.lake.topics.stats import LakeView

        if not views:
            views.append(LakeView(group.settings))
        return views[0].snapshot()

    return look


def _load_seen(cursor: str | None) -> Mapping[str, Seen]:
    """What was recorded before; nothing where the cursor is none of ours: all is recorded once more then."""
    try:
        return _CURSOR.validate_json(cursor or "{}", strict=True)
    except ValidationError:
        return {}
