"""Job that deletes old runs and looks at the lake: Dagster itself keeps every run and every event for ever."""

import time
from collections.abc import Callable, Iterable, Sequence

import dagster as dg
from dagster._core.definitions.assets.job.asset_job import IMPLICIT_ASSET_JOB_NAME
from pydantic import Field

from kgs_dagster.assets.control_loop import control_loop_keys
from kgs_dagster.assets.lake import lake_layout
from kgs_dagster.jobs.shape import op_job
from kgs_dagster.launch import GROUP
from kgs_dagster.retention import (
    days_ago,
    delete_looks,
    delete_run,
    tells_how_it_is,
    unknown_tables,
)
from kgs_dagster.run_process import DAY_S, ENDED, claim_run, failures_named
from kgs_dagster.settings import GroupConfig, prunes_events

ASSET_JOBS = ("rebalance_job", "lake_audit_job", "catalog_job")
"""Jobs whose newest good run says how its assets and checks are."""
DAILY_JOB = "bill_job"
"""Its good runs stay, one for each day: a day whose run is gone would count as never made."""
BY_HAND = IMPLICIT_ASSET_JOB_NAME
"""Job of runs that people start from an asset's page. They have no tag of the group, and stay while they tell the
newest of an asset, of one of its partitions or of a check."""


class PruneConfig(dg.Config):
    """Retention of what is over."""

    keep_days: float = Field(default=14, gt=0, description="Ended runs that did not fail.")
    keep_failed_days: float = Field(default=60, gt=0, description="Failed runs.")
    keep_looks_days: float = Field(
        default=3,
        gt=0,
        description="Events that sensors record without a run, up to one a minute and table. Needs KGS_PRUNE_EVENTS=1 "
        "in the code location: kgs then deletes in Dagster's own tables.",
    )


def prune_runs_job(group: GroupConfig, clock: Callable[[], float] = time.time) -> dg.JobDefinition:
    """Old runs and looks of this group, and of nobody else; the assets' history goes with them."""

    @dg.op(name=f"prune_runs{group.suffix}", out=dg.Out(dg.Nothing))
    def prune_runs(context: dg.OpExecutionContext, config: PruneConfig) -> None:
        claim_run(context.instance, context.run_id)
        now = clock()
        with failures_named():
            in_tables = prunes_events()
        if in_tables and (why := unknown_tables()):
            context.log.warning(why)
            in_tables = False
        runs, failed = 0, dict[str, str]()
        for run_id in _old_runs(context.instance, group, config, now, by_hand=in_tables):
            try:
                (delete_run if in_tables else dg.DagsterInstance.delete_run)(context.instance, run_id)
                runs += 1
            except Exception as e:  # noqa: BLE001 - of whatever kind: one run keeps no other one
                failed[run_id] = str(e)
        before = days_ago(config.keep_looks_days, now)
        looks = delete_looks(context.instance, _seen(group), before) if in_tables else 0
        context.add_output_metadata({"runs": runs, "looks": looks})
        if failed:
            first, why = next(iter(failed.items()))
            what = f"{len(failed)} runs are not deleted, and are tried again: run {first}: {why}"
            raise dg.Failure(what, allow_retries=False)

    about = (
        f"Deletes runs of group {group.name} that ended long ago, with their events and logs, and what its sensors "
        "recorded long ago. Of jobs that make assets the last good run stays."
    )
    return op_job(group, "prune_runs_job", "prune", prune_runs, about, DAY_S)


def _seen(group: GroupConfig) -> list[dg.AssetKey]:
    """Assets of which sensors record something."""
    seen = ((each.table, *each.sides.values(), *each.derived.values()) for each in lake_layout(group))
    return [*(key for keys in seen for key in keys), *control_loop_keys(group)]


def _old_runs(
    instance: dg.DagsterInstance, group: GroupConfig, config: PruneConfig, now: float, *, by_hand: bool
) -> Iterable[str]:
    failed = [dg.DagsterRunStatus.FAILURE]
    others = [status for status in ENDED if status not in failed]
    kept = {run_id for job in ASSET_JOBS for run_id in _good(instance, group, f"{job}{group.suffix}", limit=1)}
    kept |= {*_good(instance, group, f"{DAILY_JOB}{group.suffix}")}
    for statuses, days in ((others, config.keep_days), (failed, config.keep_failed_days)):
        old = dg.RunsFilter(tags={GROUP: group.name}, statuses=statuses, updated_before=days_ago(days, now))
        yield from (run_id for run_id in instance.get_run_ids(old) if run_id not in kept)
        if not by_hand:  # whether one is the newest of something, only Dagster's tables say
            continue
        from_pages = dg.RunsFilter(job_name=BY_HAND, statuses=statuses, updated_before=days_ago(days, now))
        for run in instance.get_runs(from_pages):
            if _is_of(group, run) and not tells_how_it_is(instance, run.run_id):
                yield run.run_id


def _is_of(group: GroupConfig, run: dg.DagsterRun) -> bool:
    """Whether a run without a job of ours is about assets of this group, and of it alone."""
    checks = {check.asset_key for check in run.asset_check_selection or ()}
    return {key.path[0] for key in {*(run.asset_selection or ()), *checks}} == {group.name}


def _good(instance: dg.DagsterInstance, group: GroupConfig, job: str, limit: int | None = None) -> Sequence[str]:
    good = dg.RunsFilter(tags={GROUP: group.name}, job_name=job, statuses=[dg.DagsterRunStatus.SUCCESS])
    return instance.get_run_ids(good, limit=limit)
