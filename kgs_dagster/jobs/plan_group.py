"""Job that plans for a consumer group that kgs does not read by: what `kgs plan --group NAME` says, by hand."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from kgs_core.config import Settings
from kgs_dagster.jobs.shape import op_job
from kgs_dagster.metadata import bullets, table
from kgs_dagster.run_process import DAY_S, claim_run, failures_named
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.api.plans import PlanReport

MakePlan = Callable[[Settings, str], "PlanReport"]
_COLUMNS = {
    "consumer": "int",
    "name": "string",
    "partitions": "int",
    "written_bytes_per_s": "float",
    "read_bytes_per_s": "float",
    "behind_bytes": "float",
}
_PARTITION_COLUMNS = {"topic": "string", "partition": "int", "consumer": "int"}


class OtherGroup(dg.Config):
    """Group to plan for."""

    group: str = Field(description="group.id of consumers on the brokers of kgs.yaml; kgs takes no part in it")


def make_plan(settings: Settings, group: str) -> "PlanReport":
    """The plan, after monitor.window_s seconds.

    Raises:
        PortError: no such group, or Kafka does not answer.
    """
    from kgs_core.api.plans import plan

    return plan(settings, group=group)


def plan_group_job(group: GroupConfig, make_plan: MakePlan = make_plan) -> dg.JobDefinition:
    """A job and no asset: nobody needs it made, and an asset would be shown as missing for ever."""

    @dg.op(name=f"plan_group{group.suffix}", out=dg.Out(dg.Nothing))
    def plan_group(context: dg.OpExecutionContext, config: OtherGroup) -> None:
        claim_run(context.instance, context.run_id)
        with failures_named():
            found = make_plan(group.settings, config.group)
        context.add_output_metadata(metadata_of(found.to_dict()))

    about = (
        "How many consumers another consumer group needs, who would read what, and what is wrong today. Name the group "
        "in the launchpad; nothing is changed."
    )
    return op_job(group, "plan_group_job", "plan", plan_group, about, DAY_S / 24)


def metadata_of(plan: dict[str, Any]) -> dict[str, Any]:
    """Figures of the plan, as `PlanReport.to_dict` gives it; what is not known is not there."""
    of_group = plan["group"]
    members = ({name: one[name] for name in _COLUMNS if one[name] is not None} for one in of_group["members"])
    topics = plan["assignment"].items()
    rows = ({"topic": topic, "partition": int(n), "consumer": c} for topic, each in topics for n, c in each.items())
    return {
        "group": of_group["name"],
        "members_now": len(of_group["members"]),
        "consumers_needed": plan["consumers"],
        "moves": len(plan["moves"]),
        "rscore": plan["rscore"],
        "advice": dg.MetadataValue.md(bullets(of_group["advice"])),
        "members": table(members, _COLUMNS),
        "assignment": table(rows, _PARTITION_COLUMNS),
    }
