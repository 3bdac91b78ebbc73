"""Checks of the lake: every record is in its table once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dagster as dg

import kgs_core as kgs
from kgs_core.config import Settings
from kgs_core.lake.rule import DerivedAudit, LakeAudit, TableAudit
from kgs_core.reporting.audit_json import COUNTED
from kgs_dagster.assets.lake import LakeAsset, lake_layout
from kgs_dagster.checks.results import result_to_repeat
from kgs_dagster.run_process import claim_run, fail_if, failures_named
from kgs_dagster.settings import GroupConfig

CHECK = "exactly_once"
_SHOWN = 50
Audit = Callable[[Settings], LakeAudit]


def audit(settings: Settings) -> LakeAudit:
    """The audit of `kgs audit`, with Kafka's log."""
    return kgs.audit(settings)


def lake_checks(group: GroupConfig, audit: Audit = audit) -> dg.AssetChecksDefinition:
    """One check a table, all of them in one step: the audit reads each topic's log as far as it is still there."""
    layout = lake_layout(group)

    @dg.multi_asset_check(
        name=f"lake_audit{group.suffix}",
        specs=[
            dg.AssetCheckSpec(
                CHECK, asset=asset.table, description="No record lost, none twice: what `kgs audit` finds."
            )
            for asset in layout
        ],
        can_subset=True,  # else the UI lets nobody execute one
    )
    def lake_audit(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        claim_run(context.instance, context.op_execution_context.run_id)
        with failures_named():
            found = audit(group.settings)
        for asset in layout:
            if dg.AssetCheckKey(asset.table, CHECK) in context.selected_asset_check_keys:
                tables = [table for table in found.tables if asset.holds(group.settings, table.topic)]
                own = {table.table for table in tables}
                yield _result(asset, tables, [each for each in found.derived if each.source in own])
        fail_if([table.problem for table in found.tables if table.problem and not table.topic])

    return lake_audit


def results_to_repeat(group: GroupConfig, instance: dg.DagsterInstance) -> list[dg.AssetCheckEvaluation]:
    """Results of the audit that the UI would hide as soon as a table is materialized, which is once a minute."""
    found = (result_to_repeat(instance, dg.AssetCheckKey(asset.table, CHECK)) for asset in lake_layout(group))
    return [each for each in found if each is not None]


def _result(asset: LakeAsset, tables: Sequence[TableAudit], derived: Sequence[DerivedAudit]) -> dg.AssetCheckResult:
    metadata: dict[str, Any] = {
        "rows": sum(table.rows for table in tables),
        "dead_letters": sum(table.dead_letters for table in tables),
        **{fault.value: sum(table.count(fault) for table in tables) for fault in COUNTED},
        "tables": len({table.table for table in tables if table.version is not None}),
    }
    if unread := [table.unread for table in tables if table.unread is not None]:
        metadata["unread"] = sum(unread)
    if derived:
        metadata["newest_rows_wrong"] = sum(each.wrong for each in derived)
    lines = [line for table in tables for line in _lines(table)]
    if lines := lines + [f"- {each}" for each in derived if not each.ok]:
        more = [f"- and {len(lines) - _SHOWN} more: `kgs audit` lists them all"] if len(lines) > _SHOWN else []
        metadata["findings"] = dg.MetadataValue.md("\n".join([*lines[:_SHOWN], *more]))
    return dg.AssetCheckResult(
        passed=all(table.ok for table in tables) and all(each.ok for each in derived),
        check_name=CHECK,
        asset_key=asset.table,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
    )


def _lines(table: TableAudit) -> Iterator[str]:
    if table.problem:
        yield f"- {table.topic}: {table.problem}"
    for partition in table.partitions:
        for finding in partition.findings:
            yield f"- {table.topic}:{partition.stored.partition}: {finding}"
    for note in table.notes:
        yield f"- {table.topic}: {note}"
