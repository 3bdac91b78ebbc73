"""Derived tables of the whole lake, brought up to date one after the other."""

from collections.abc import Callable, Collection

from kgs_core.adapters.lake.discovery import find_tables
from kgs_core.adapters.lake.factory import open_lake
from kgs_core.adapters.lake.latest_by_key import LatestByKeyTable, Materialization
from kgs_core.config import Settings, TableSpec
from kgs_core.errors import ConfigError, KgsError


def materialize_lake(
    settings: Settings,
    done: Callable[[Materialization], None],
    *,
    tables: Collection[str] = (),
    wanted: Callable[[TableSpec], bool] = lambda _: True,
) -> None:
    """All derived tables, one after the other; Kafka is not asked.

    Args:
        done: told of each table when it is finished, or cannot be.
        tables: only these, by their path under the lake's root; empty: all.
        wanted: only those of topics of which it is true.

    Raises:
        ConfigError: `tables` names one that is none of them.
        PermanentError: the lake cannot be listed.
    """
    specs: dict[str, list[TableSpec]] = {}
    for spec in find_tables(settings, open_lake(settings.lake), (), None):
        if spec.latest_table is not None:
            specs.setdefault(spec.latest_table, []).append(spec)
    if unknown := sorted(set(tables) - specs.keys()):
        raise ConfigError([f"table {name}: no rule's latest_by_key names it: see 'topics'" for name in unknown])
    for name, alike in specs.items():
        if any(map(wanted, alike)) and (not tables or name in tables):
            try:
                found = LatestByKeyTable(settings, alike[0]).materialize()
            except KgsError as e:
                found = Materialization(name, problem=str(e))
            done(found)
