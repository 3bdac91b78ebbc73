"""The job and the schedule of the daily bill."""

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import dagster as dg

from kgs_dagster.assets.bill import BILL
from kgs_dagster.launch import GROUP, ROLE
from kgs_dagster.run_process import DAY_S, MAX_RUNTIME
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

CRON = "11 0 * * *"
"""Soon after midnight, UTC: what reports said at the beginning of the day is deleted first."""


def bill_job(group: GroupConfig) -> "UnresolvedAssetJobDefinition":
    """The bill of a day."""
    return dg.define_asset_job(
        f"bill_job{group.suffix}",
        selection=dg.AssetSelection.assets(group.key(BILL)),
        description="Bill of a day: what `kgs bill --keep` does.",
        executor_def=dg.in_process_executor,
        tags={GROUP: group.name, ROLE: "bill", MAX_RUNTIME: str(DAY_S // 4)},
    )


def bill_schedule(group: GroupConfig, job: "UnresolvedAssetJobDefinition") -> dg.ScheduleDefinition:
    """Asks for the bill of yesterday, every day."""

    def execution(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        day = (context.scheduled_execution_time.astimezone(UTC).date() - timedelta(days=1)).isoformat()
        return dg.RunRequest(run_key=f"{group.name}/{day}", partition_key=day)

    return dg.ScheduleDefinition(
        name=f"bill_schedule{group.suffix}",
        description=f"{job.description} UTC.",
        job=job,
        cron_schedule=CRON,
        execution_fn=execution,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
