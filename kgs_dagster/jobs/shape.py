"""The shape that the jobs of a group have in common: one process, and tags that say whose they are and for what."""

from collections.abc import Mapping
from types import MappingProxyType

import dagster as dg

# What dg.define_asset_job returns; Dagster has no public name for it
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition as AssetJob

from kgs_dagster.launch import GROUP, ROLE
from kgs_dagster.run_process import MAX_RUNTIME
from kgs_dagster.settings import GroupConfig

__all__ = ["AssetJob", "Job", "asset_job", "op_job"]

Job = dg.JobDefinition | AssetJob


def asset_job(  # noqa: PLR0913 - what a job has
    group: GroupConfig,
    name: str,
    role: str,
    selection: dg.AssetSelection,
    description: str,
    longest_s: float,
    *,
    tags: Mapping[str, str] = MappingProxyType({}),
) -> AssetJob:
    """A job that makes assets or checks."""
    return dg.define_asset_job(
        f"{name}{group.suffix}",
        selection=selection,
        description=description,
        executor_def=dg.in_process_executor,
        tags={**_tags(group, role, longest_s), **tags},
    )


def op_job(
    group: GroupConfig, name: str, role: str, op: dg.OpDefinition, description: str, longest_s: float
) -> dg.JobDefinition:
    """A job of one op."""

    @dg.job(
        name=f"{name}{group.suffix}",
        description=description,
        executor_def=dg.in_process_executor,
        tags=_tags(group, role, longest_s),
    )
    def job() -> None:
        op()

    return job


def _tags(group: GroupConfig, role: str, longest_s: float) -> dict[str, str]:
    return {GROUP: group.name, ROLE: role, MAX_RUNTIME: f"{longest_s:.0f}"}
