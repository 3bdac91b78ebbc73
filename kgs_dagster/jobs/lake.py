"""Jobs that look after the lake: its upkeep, and its audit."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import dagster as dg

from kgs_core.config import Settings
from kgs_dagster.assets.catalog import catalog_key
from kgs_dagster.assets.lake import lake_layout
from kgs_dagster.checks.lake import CHECK
from kgs_dagster.jobs.shape import AssetJob, asset_job, op_job
from kgs_dagster.run_process import DAY_S, claim_run, fail_if, failures_named
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.ports import Upkeep

Maintain = Callable[[Settings, Callable[["Upkeep"], None]], None]


def maintain(settings: Settings, done: Callable[["Upkeep"], None]) -> None:
    """The upkeep of `kgs maintain`."""
    from kgs_core.lake.topics.maintenance import maintain_lake

    maintain_lake(settings, done=done)


def lake_maintenance_job(group: GroupConfig, maintain: Maintain = maintain) -> dg.JobDefinition:
    """Compaction, checkpoint, clean-up and vacuum of all tables, one after the other."""

    @dg.op(name=f"maintain_tables{group.suffix}", out=dg.Out(dg.Nothing))
    def maintain_tables(context: dg.OpExecutionContext) -> None:
        claim_run(context.instance, context.run_id)
        done: list[Upkeep] = []
        with failures_named():
            maintain(group.settings, done.append)
        if done:
            context.add_output_metadata(_upkeep_metadata(done))
        fail_if([f"table {each.table}: {each.problem}" for each in done if each.problem is not None])

    return op_job(
        group,
        "lake_maintenance_job",
        "maintenance",
        maintain_tables,
        "Joins small files, writes checkpoints, removes what no version of a table needs. Consumers keep running.",
        DAY_S / 4,
    )


def lake_audit_job(group: GroupConfig) -> AssetJob:
    """The checks of all tables. Reads all offsets of the lake, and all of Kafka's log that is still there."""
    keys = [dg.AssetCheckKey(asset.table, CHECK) for asset in lake_layout(group)]
    about = "Audits every table: no record lost, none twice."
    return asset_job(group, "lake_audit_job", "audit", dg.AssetSelection.checks(*keys), about, DAY_S)


def catalog_job(group: GroupConfig) -> AssetJob | None:
    """The tables registered in the catalogue; None where none is configured."""
    if group.settings.catalog is None:
        return None
    about = "Registers new tables in the catalogue, and columns that became more. Consumers keep running."
    selection = dg.AssetSelection.assets(catalog_key(group))
    return asset_job(group, "catalog_job", "register", selection, about, DAY_S / 24)


def _upkeep_metadata(done: "list[Upkeep]") -> dict[str, dg.MetadataValue | int | float]:
    records = [
        dg.TableRecord(
            {
                "table": each.table,
                "files before": each.files[0],
                "files after": each.files[1],
                "bytes before": each.bytes[0],
                "bytes after": each.bytes[1],
                "removed": each.removed,
                "ended": each.ended,
                "problem": each.problem or "",
            }
        )
        for each in done
    ]
    return {
        "files_before": sum(each.files[0] for each in done),
        "files_after": sum(each.files[1] for each in done),
        "removed_bytes": sum(each.removed_bytes for each in done),
        "ended_records": sum(each.ended for each in done),
        "tables": dg.MetadataValue.table(records),
    }
