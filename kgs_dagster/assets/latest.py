"""Derived tables with the newest row of each key: the one thing of the lake that Dagster may compute itself."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from kgs_core.config import Settings, TopicRule
from kgs_core.errors import KgsError
from kgs_dagster.assets.columns import derived_columns
from kgs_dagster.assets.lake import LakeAsset, lake_layout, storage_metadata, table_kinds
from kgs_dagster.metadata import table
from kgs_dagster.run_process import claim_run, fail_if
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.lake.derived.latest_by_key import Materialization

Materialize = Callable[[Settings, TopicRule], "Sequence[Materialization]"]


def materialize(settings: Settings, rule: TopicRule) -> "Sequence[Materialization]":
    """What `kgs materialize` does, for the tables of one rule."""
    from kgs_core.lake.derived.materialize import materialize_lake

    found: list[Materialization] = []
    materialize_lake(settings, found.append, wanted=lambda each: each is rule)
    return found


def latest_layout(group: GroupConfig) -> tuple[LakeAsset, ...]:
    """The rules that have a derived table."""
    return tuple(asset for asset in lake_layout(group) if asset.derived)


def latest_assets(group: GroupConfig, materialize: Materialize = materialize) -> list[dg.AssetsDefinition]:
    """All derived tables, in one step; none where no rule has any."""
    layout = latest_layout(group)
    if not layout:
        return []

    @dg.multi_asset(
        name=f"latest_by_key{group.suffix}",
        specs=[_spec(group, asset, path) for asset in layout for path in asset.derived],
        can_subset=True,
    )
    def latest_by_key(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        claim_run(context.instance, context.run.run_id)
        problems: list[str] = []
        for asset in layout:
            chosen = {path: key for path, key in asset.derived.items() if key in context.selected_asset_keys}
            if not chosen:
                continue
            try:
                found = materialize(group.settings, asset.rule)
            except KgsError as e:
                problems.append(str(e))
                continue
            problems += [f"table {each.table}: {each.problem}" for each in found if each.problem]
            for path, key in chosen.items():
                alike = [each for each in found if each.is_history == _is_history(asset, path)]
                yield dg.MaterializeResult(asset_key=key, metadata=_metadata(alike))
        fail_if(problems)

    return [latest_by_key]


def _is_history(asset: LakeAsset, path: str) -> bool:
    return asset.rule.newest_rows is not None and path == asset.rule.newest_rows.history


def has_columns_of_rule(asset: LakeAsset, path: str) -> bool:
    """Whether a derived table has its table's columns: not those of a followed table, nor a history's."""
    is_plain = asset.rule.newest_rows is not None and asset.rule.newest_rows.changes is None
    return is_plain and not _is_history(asset, path)


def _spec(group: GroupConfig, asset: LakeAsset, path: str) -> dg.AssetSpec:
    columns = derived_columns(asset.sources, asset.table) if has_columns_of_rule(asset, path) else {}
    what = "all changes" if _is_history(asset, path) else "the newest row"
    return dg.AssetSpec(
        asset.derived[path],
        deps=[asset.table],
        description=f"Delta table with {what} of each {', '.join(asset.rule.newest_key)}, derived from "
        f"{asset.table.path[-1]} by the consumers of group {group.name}. Materialized whenever a look finds it "
        "changed; a run does what `kgs materialize` does.",
        group_name=f"lake{group.suffix}",
        kinds=table_kinds(group),
        metadata={**storage_metadata(group, asset.rule, path), **columns},
        skippable=True,
    )


def _metadata(found: "Sequence[Materialization]") -> dict[str, Any]:
    columns = {"table": "string", "rows": "int", "rebuilt because": "string"}
    lines = [{"table": each.table, "rows": each.rows, "rebuilt because": each.anew or ""} for each in found]
    return {
        "new_rows": sum(each.rows for each in found),
        "tombstones": sum(each.tombstones for each in found),
        "commits": sum(each.commits for each in found),
        "tables": table(lines, columns),
    }
