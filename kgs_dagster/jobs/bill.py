"""The job and the schedule of the daily bill."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.storage.tags import PARTITION_NAME_TAG

from kgs_core.config.membership import REPORT_RETENTION_H
from kgs_dagster.assets.bill import BILL
from kgs_dagster.jobs.shape import AssetJob, asset_job
from kgs_dagster.run_process import DAY_S, NOT_ENDED
from kgs_dagster.settings import GroupConfig

CRON = "11 */3 * * *"
"""Soon after midnight, UTC: what reports said at the beginning of the day is deleted first. Later: what failed."""
_MOST_DAYS = 31


def bill_job(group: GroupConfig) -> AssetJob:
    """The bill of a day."""
    selection = dg.AssetSelection.assets(group.key(BILL))
    return asset_job(group, "bill_job", "bill", selection, "Bill of a day: what `kgs bill --keep` does.", DAY_S / 4)


def bill_schedule(group: GroupConfig, job: AssetJob) -> dg.ScheduleDefinition:
    """Asks for the bill of yesterday, and again for each one that failed or was missed while its reports are kept."""

    def execution(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        at = context.scheduled_execution_time.astimezone(UTC)
        made = context.instance.get_materialized_partitions(group.key(BILL))
        running = context.instance.get_runs(dg.RunsFilter(job_name=job.name, statuses=list(NOT_ENDED)))
        busy = {run.tags.get(PARTITION_NAME_TAG) for run in running}
        days = [day for day in _days(at, made) if day not in busy]
        # A key of its own for each time: one that failed is asked for again
        yield from (dg.RunRequest(f"{group.name}/{day}/{at:%Y-%m-%dT%H}", partition_key=day) for day in days)
        if not days:
            yield dg.SkipReason("the bill of every day that is over and not forgotten is made, or on its way")

    return dg.ScheduleDefinition(
        name=f"bill_schedule{group.suffix}",
        description=f"{job.description} UTC. A failed one is requested again while its reports are kept.",
        job=job,
        cron_schedule=CRON,
        execution_fn=execution,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )


def _days(at: datetime, made: Collection[str]) -> Sequence[str]:
    """Days without a bill of which the topics still have something; none before the first that has one."""
    kept_days = min(_MOST_DAYS, -(-REPORT_RETENTION_H // 24))
    days = [(at.date() - timedelta(days=n)).isoformat() for n in range(1, kept_days + 1)]
    return [day for day in days if day not in made and (day == days[0] or day > min(made, default=day))]
