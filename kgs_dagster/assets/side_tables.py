"""Side tables as assets: the rows of a rule's topics that its route puts beside its own table."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import dagster as dg

from kgs_core.config.rule.routing import text_of
from kgs_core.reporting.sums import whole_sum
from kgs_dagster.assets.columns import own_columns
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


def side_assets(group: GroupConfig) -> list[dg.AssetSpec]:
    """Every side table with its topics upstream; none where no rule has a route."""
    return [_spec(group, asset, path) for asset in lake_layout(group) for path in asset.sides]


def side_events(
    group: GroupConfig, snapshot: "LakeSnapshot", before: Mapping[str, Seen], now: float
) -> tuple[list[dg.AssetMaterialization | dg.AssetObservation], dict[str, Seen]]:
    """What to record of side tables at a look at the lake; see `lake_events`.

    One is materialized where a look finds more rows in it than before, and observed otherwise.
    """
    events: list[dg.AssetMaterialization | dg.AssetObservation] = []
    after: dict[str, Seen] = {}
    for asset in lake_layout(group):
        views = [view for view in snapshot.tables if asset.holds(group.settings, view.topic)]
        for path, key in asset.sides.items():
            tables = {s.table: s for v in views for s in v.sides if s.table == asset.rule.filled(path, v.topic)}
            name, figures = key.to_user_string(), _figures([*tables.values()])
            last = before.get(name)
            if is_no_news(tables.values(), figures, last, now):
                after |= {} if last is None else {name: last}
                continue
            rows, before_rows = figures["rows"], last.position if last is not None else None
            after[name] = Seen(now, before_rows if rows is None else rows, tuple(figures.values()))
            has_more = rows is not None and rows > (before_rows or 0)
            kind = dg.AssetMaterialization if has_more else dg.AssetObservation
            metadata = {figure: value for figure, value in figures.items() if value is not None}
            fields = (column for table in tables.values() for column in table.fields)
            events.append(kind(asset_key=key, metadata={**metadata, **own_columns(asset.sources, fields)}))
    return events, after


def _spec(group: GroupConfig, asset: LakeAsset, path: str) -> dg.AssetSpec:
    route = asset.rule.route
    if route is None:
        raise ValueError("a rule without a route")
    values = " or ".join(text_of(value) for value, table in route.tables.items() if table == path)
    return dg.AssetSpec(
        asset.sides[path],
        deps=list(asset.topics),
        description=words_of(asset.rule)
        + f"Delta table with the rows whose {route.column} is {values}, filled by the consumers of group {group.name}, "
        f"exactly once. All others are in {asset.table.path[-1]}, whose check is of both.",
        group_name=f"lake{group.suffix}",
        kinds=table_kinds(group),
        metadata=table_metadata(group, asset) | storage_metadata(group, asset.rule, path),
    )


def _figures(tables: "list[TableView]") -> dict[str, int | None]:
    figures = {name: whole_sum(getattr(table, name) for table in tables) for name in ("rows", "size_bytes", "files")}
    return {**figures, "tables": len(tables)}
