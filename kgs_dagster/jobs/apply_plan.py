"""Job that approves a plan which waits: what `kgs approve` does, from Dagster."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from kgs_core.config import Settings
from kgs_core.errors import KgsError
from kgs_dagster.launch import GROUP, ROLE
from kgs_dagster.resources import database
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.runtime.approve import Approved

PLAN = "kgs/plan"
ApprovePlan = Callable[[Settings, str, str], "Approved"]


class ApplyPlanConfig(dg.Config):
    """Which plan."""

    plan: str = Field(description="Its id, as the sensor and `kgs status` show it.")


def _approve(settings: Settings, plan_id: str, by: str) -> "Approved":
    from kgs_core.runtime.approve import approve_plan

    return approve_plan(settings, plan_id, by)


def apply_plan_job(group: GroupConfig, approve: ApprovePlan = _approve) -> dg.JobDefinition:
    """Approval of one plan; run again, it changes nothing. Who controls the group carries the plan out."""

    @dg.op(name=f"approve_plan{group.suffix}", out=dg.Out(dg.Nothing))
    def approve_plan(context: dg.OpExecutionContext, config: ApplyPlanConfig) -> None:
        try:
            with database("the run cannot be marked"):
                context.instance.add_run_tags(context.run_id, {PLAN: config.plan})
            found = approve(group.settings, config.plan, f"dagster run {context.run_id[:8]}")
        except KgsError as e:
            raise dg.Failure(str(e), allow_retries=False) from e
        if found.plan is None:
            context.log.info(f"plan {config.plan} was approved and carried out before")
            return
        context.log.info(str(found.plan))
        context.add_output_metadata(
            {
                "plan": found.plan.plan_id,
                "approved_before": not found.is_new,
                "consumers_before": found.plan.consumers_before,
                "consumers_after": found.plan.consumers_after,
                "moved": len(found.plan.moves),
                "rscore": found.plan.rscore,
            }
        )

    @dg.job(
        name=f"apply_plan_job{group.suffix}",
        description=f"Approves a plan of group {group.name} that waits (packing.apply: approve), by its id. The sensor "
        "then asks for the rebalance run that carries it out; what is forced never waits for it.",
        executor_def=dg.in_process_executor,
        tags={GROUP: group.name, ROLE: "apply-plan"},
    )
    def job() -> None:
        approve_plan()

    return job
