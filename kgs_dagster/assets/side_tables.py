"""Tables beside a rule's own as assets: side tables, which its route fills, and newest rows, which consumers keep."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import dagster as dg

from kgs_core.config.rule.routing import Route, text_of
from kgs_core.model import whole_sum
from kgs_dagster.assets.columns import Source, derived_columns, own_columns
from kgs_dagster.assets.lake import (
    LakeAsset,
    Seen,
    is_no_news,
    lake_layout,
    storage_metadata,
    table_kinds,
    table_metadata,
    words_of,
)
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.lake.topics.stats import LakeSnapshot, TableView


def beside_assets(group: GroupConfig) -> list[dg.AssetSpec]:
    """Every side table with its topics upstream, and newest rows and their history with their table upstream."""
    routed = ((asset, asset.rule.route) for asset in lake_layout(group))
    sides = [_side_spec(group, asset, route, path) for asset, route in routed if route for path in asset.sides]
    return sides + [_derived_spec(group, asset, path) for asset in lake_layout(group) for path in asset.derived]


def beside_events(
    group: GroupConfig, snapshot: "LakeSnapshot", before: Mapping[str, Seen], now: float
) -> tuple[list[dg.AssetMaterialization | dg.AssetObservation], dict[str, Seen]]:
    """What to record of side tables and newest rows at a look at the lake; see `lake_events`.

    A side table is materialized where a look finds another number of rows in it than before, newest rows where it
    finds another version; both are observed otherwise.
    """
    events: list[dg.AssetMaterialization | dg.AssetObservation] = []
    after: dict[str, Seen] = {}

    def record(key: dg.AssetKey, tables: "list[TableView]", position: int | None, sources: Sequence[Source]) -> None:
        name, figures = key.to_user_string(), _figures(tables)
        last = before.get(name)
        if is_no_news(tables, compared := {**figures, "position": position}, last, now):
            after.update({} if last is None else {name: last})
            return
        known = (last.position if last is not None else None) or 0
        is_less = position is None or (position < known and any(table.version is None for table in tables))
        after[name] = Seen(now, known if is_less else position, tuple(compared.values()))
        kind = dg.AssetObservation if is_less or position == known else dg.AssetMaterialization
        metadata = {figure: value for figure, value in figures.items() if value is not None}
        fields = (column for table in tables for column in table.fields)
        events.append(kind(asset_key=key, metadata={**metadata, **own_columns(sources, fields)}))

    for asset in lake_layout(group):
        views = [view for view in snapshot.tables if asset.holds(group.settings, view.topic)]
        for path, key in asset.sides.items():
            named = {s.table: s for v in views for s in v.sides if s.table == asset.rule.filled(path, v.topic)}
            sides = [*named.values()]
            record(key, sides, whole_sum(side.rows for side in sides), asset.sources)
        for path, key in asset.derived.items():
            named = {d.table: d for v in views for d in v.derived if d.table == asset.rule.filled(path, v.topic)}
            derived = [*named.values()]
            # Topics without records have no table yet
            versions = sum(1 + table.version for table in derived if table.version is not None)
            record(key, derived, versions, asset.sources if _has_columns_of_rule(asset, path) else ())
    return events, after


def _side_spec(group: GroupConfig, asset: LakeAsset, route: Route, path: str) -> dg.AssetSpec:
    values = " or ".join(text_of(value) for value, table in route.tables.items() if table == path)
    return dg.AssetSpec(
        asset.sides[path],
        deps=list(asset.topics),
        description=words_of(asset.rule)
        + f"Delta table with the rows whose {route.column} is {values}, filled by the consumers of group {group.name}, "
        f"exactly once. All others are in {asset.table.path[-1]}, whose check covers both.",
        group_name=f"lake{group.suffix}",
        kinds=table_kinds(group),
        metadata=table_metadata(group, asset) | storage_metadata(group, asset.rule, path),
    )


def _derived_spec(group: GroupConfig, asset: LakeAsset, path: str) -> dg.AssetSpec:
    columns = derived_columns(asset.sources, asset.table) if _has_columns_of_rule(asset, path) else {}
    what = "all changes" if _is_history(asset, path) else "the newest row"
    return dg.AssetSpec(
        asset.derived[path],
        deps=[asset.table],
        description=f"Delta table with {what} of each {', '.join(asset.rule.newest_key)}, derived from "
        f"{asset.table.path[-1]} by the consumers of group {group.name}. Materialized when a look finds it "
        "changed.",
        group_name=f"lake{group.suffix}",
        kinds=table_kinds(group),
        metadata={**storage_metadata(group, asset.rule, path), **columns},
    )


def _is_history(asset: LakeAsset, path: str) -> bool:
    return asset.rule.newest_rows is not None and path == asset.rule.newest_rows.history


def _has_columns_of_rule(asset: LakeAsset, path: str) -> bool:
    """Whether a derived table has its table's columns: not those of a followed table, nor a history's."""
    is_plain = asset.rule.newest_rows is not None and asset.rule.newest_rows.changes is None
    return is_plain and not _is_history(asset, path)


def _figures(tables: "list[TableView]") -> dict[str, int | None]:
    figures = {name: whole_sum(getattr(table, name) for table in tables) for name in ("rows", "size_bytes", "files")}
    return {**figures, "tables": len(tables)}
