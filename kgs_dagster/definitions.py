"""Definitions that Dagster loads: everything of every configured group; without any, or when asked, the experiments.

Another project takes it in with `dg.Definitions.merge(own, build_defs(...))`, see docs/dagster.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import dagster as dg

from kgs_dagster.assets.bill import bill_asset
from kgs_dagster.assets.catalog import catalog_assets
from kgs_dagster.assets.control_loop import control_loop_assets
from kgs_dagster.assets.experiment_reports import report_assets
from kgs_dagster.assets.experiments import experiment_assets
from kgs_dagster.assets.lake import lake_assets
from kgs_dagster.assets.side_tables import beside_assets
from kgs_dagster.automation import (
    AUDIT_CRON,
    lake_sensor,
    lost_runs_sensor,
    schedule,
    scheduled_jobs,
)
from kgs_dagster.checks.bad_records import bad_records_checks
from kgs_dagster.checks.group_alerts import group_alert_checks
from kgs_dagster.checks.lake import lake_checks
from kgs_dagster.experiment_resource import EXPERIMENT_RESOURCE, ExperimentResource
from kgs_dagster.jobs.bill import bill_job, bill_schedule
from kgs_dagster.jobs.consumer import consumer_job, spark_resources
from kgs_dagster.jobs.experiments import experiment_jobs
from kgs_dagster.jobs.rebalance import rebalance_job
from kgs_dagster.jobs.redrive import redrive_job
from kgs_dagster.jobs.shape import Job
from kgs_dagster.launch import GROUP
from kgs_dagster.resources import control_resources
from kgs_dagster.sensors.complete_hours import complete_hours_sensor, hours_assets
from kgs_dagster.sensors.partition_load import partition_load_sensor
from kgs_dagster.sensors.workloads import workloads_sensor
from kgs_dagster.settings import GroupConfig, experiment_settings
from kgs_dagster.settings import groups as configured_groups

__all__ = ["build_defs", "defs"]
Asset: TypeAlias = dg.AssetSpec | dg.AssetsDefinition


def build_defs(
    resource_overrides: Mapping[str, Any] | None = None,
    groups: Sequence[GroupConfig] | None = None,
    *,
    experiments: bool = False,
) -> dg.Definitions:
    """Definitions of these groups (None: whom KGS_CONFIG names), and of experiments, once in all that is merged.

    Raises:
        ConfigError: a configuration that cannot be used.
    """
    found = configured_groups() if groups is None else groups
    overrides = resource_overrides or {}
    parts = [_group_defs(group, overrides) for group in found]
    if experiments:
        parts.append(_experiment_defs(overrides))
    return dg.Definitions.merge(*parts) if parts else dg.Definitions()


def _tagged(assets: Sequence[Asset], group: GroupConfig) -> list[Asset]:
    """Assets with what a user looks for them by: whose they are."""
    return list(dg.map_asset_specs(lambda spec: spec.replace_attributes(tags={**spec.tags, GROUP: group.name}), assets))


def _experiment_defs(overrides: Mapping[str, Any]) -> dg.Definitions:
    return dg.Definitions(
        assets=[*experiment_assets(), *report_assets()],
        jobs=experiment_jobs(),
        sensors=[workloads_sensor()],
        resources={EXPERIMENT_RESOURCE: overrides.get(EXPERIMENT_RESOURCE, ExperimentResource())},
    )


def _group_defs(group: GroupConfig, overrides: Mapping[str, Any]) -> dg.Definitions:
    resources = {
        name: overrides.get(name, resource)
        for name, resource in {**spark_resources(group), **control_resources(group)}.items()
    }
    scheduled = scheduled_jobs(group)
    control_jobs: list[Job] = [rebalance_job(group), consumer_job(group, resources)] if group.is_controlled_here else []
    daily = bill_job(group)
    jobs: list[Job] = [*control_jobs, *scheduled.values(), redrive_job(group), daily]
    hours = hours_assets(group)
    common = dg.Definitions(
        assets=_tagged(
            [
                *lake_assets(group),
                *hours,
                *beside_assets(group),
                *catalog_assets(group),
                bill_asset(group),
            ],
            group,
        ),
        asset_checks=[lake_checks(group), bad_records_checks(group)],
        jobs=jobs,
        schedules=[*(schedule(job, cron) for cron, job in scheduled.items()), bill_schedule(group, daily)],
        sensors=[
            lake_sensor(group, audit=scheduled[AUDIT_CRON]),
            lost_runs_sensor(group),
            *([complete_hours_sensor(group)] if hours else []),
        ],
        resources=resources,
    )
    if not group.is_controlled_here:
        return common
    control = dg.Definitions(
        assets=_tagged(control_loop_assets(group), group),
        asset_checks=[group_alert_checks(group)],
        sensors=[partition_load_sensor(group, control_jobs)],
    )
    return dg.Definitions.merge(common, control)


_groups = configured_groups()
defs = build_defs(groups=_groups, experiments=not _groups or experiment_settings().folder is not None)
