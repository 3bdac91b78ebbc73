"""Tables of a group as arguments of a user's own assets."""

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from kgs_core.config import Settings, TopicRule
from kgs_core.config.rule.topic_names import IN_BRACES
from kgs_core.errors import ConfigError
from kgs_core.lake.derived.materialize import rows_of
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import OffsetRange
from kgs_core.system.transform_folder import load_client_settings
from kgs_dagster.assets.lake import LakeAsset, lake_layout
from kgs_dagster.sensors.complete_hours import hours_key
from kgs_dagster.settings import GroupConfig


class TableLoader(dg.ConfigurableIOManager):
    """IO manager that loads a table of the lake as what the argument is annotated with; it stores nothing.

    Of complete hours only the rows of the asset's partitions are read, by `_timestamp`.
    """

    config: str = Field(default="kgs.yaml", description="The group's kgs.yaml.")

    def load_input(self, context: dg.InputContext) -> Any:
        """A pandas or Polars DataFrame, or (also without an annotation) a pyarrow Table.

        Raises:
            ConfigError: an asset that is no table of the group, or several; a type that it cannot be.
            PermanentError: the table is not there.
        """
        settings = load_client_settings(Path(self.config), os.environ)
        asset, path = _table_of(GroupConfig(settings, Path(self.config), ""), context.asset_key)
        path = _one_path(asset.rule, path)
        has_window = context.asset_key == hours_key(asset) and context.has_asset_partitions
        window = context.asset_partitions_time_window if has_window else None
        is_derived = context.asset_key in asset.derived.values()
        rows = rows_of(settings, path) if is_derived else _rows(settings, path, window and (window.start, window.end))
        return _as(rows, context.dagster_type.typing_type)

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:  # noqa: ARG002 - as Dagster calls it
        """Refuse: consumers write the tables, and nobody else."""
        raise ConfigError([f"{context.asset_key.to_user_string()}: {type(self).__name__} stores nothing: name another"])


def _table_of(group: GroupConfig, key: dg.AssetKey) -> tuple[LakeAsset, str]:
    """The rule's asset, and the path that the key means by the rule."""
    for asset in lake_layout(group):
        found = {asset.table: asset.rule.table, hours_key(asset): asset.rule.table}
        found |= {key: path for path, key in (*asset.sides.items(), *asset.derived.items())}
        if key in found:
            return asset, found[key]
    raise ConfigError([f"asset {key.to_user_string()}: no table of {group.path}: see its page in Dagster for the key"])


def _one_path(rule: TopicRule, path: str) -> str:
    filled = path if rule.topic is None else rule.filled(path, rule.topic)
    if IN_BRACES.search(filled):
        raise ConfigError([f"table '{path}': several tables, one for each topic: give each topic a rule of its own"])
    return filled


def _rows(settings: Settings, table: str, window: tuple[datetime, datetime] | None) -> pa.Table:
    pinned = open_lake(settings.lake).pin(table)
    if pinned is None:
        raise ConfigError([f"table {table}: not there yet: a consumer makes it"])
    schema = pinned.schema
    stamps = None if window is None else OffsetRange(*(int(each.timestamp() * 1000) for each in window))
    parts = (pinned.read(file, schema.names) for file in pinned.files(stamps_ms=stamps))
    if window is not None:
        start, end = (pa.scalar(each, pa.timestamp("us", tz="UTC")) for each in window)
        wanted = (pc.field("_timestamp") >= start) & (pc.field("_timestamp") < end)
        parts = (part.filter(wanted) for part in parts)
    # A column that came later is in no old file, and an hour may have no file
    return pa.concat_tables([schema.empty_table(), *parts], promote_options="permissive")


def _as(rows: pa.Table, kind: Any) -> Any:
    name = f"{getattr(kind, '__module__', '').split('.')[0]}.{getattr(kind, '__name__', '')}"
    match name:
        case "pandas.DataFrame":
            return rows.to_pandas()
        case "polars.DataFrame":
            import polars as pl

            return pl.from_arrow(rows)
        case "pyarrow.Table" | "typing.Any":
            return rows
        case _:
            raise ConfigError([f"{name}: a table is loaded as pandas.DataFrame, polars.DataFrame or pyarrow.Table"])
