"""Derived tables of the whole lake, brought up to date one after the other."""

from collections.abc import Callable, Collection, Iterable

import pyarrow as pa

from kgs_core.config import Settings, TableSpec, TopicRule
from kgs_core.errors import ConfigError, KgsError
from kgs_core.lake.delta.whole_table import opened_table
from kgs_core.lake.derived.history import derived_table
from kgs_core.lake.derived.latest_by_key import Materialization
from kgs_core.lake.derived.proof import rows_as_read
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.discovery import UnreadTable, find_tables, refuse_unknown
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import grouped


def materialize_lake(
    settings: Settings,
    done: Callable[[Materialization], None],
    *,
    tables: Collection[str] = (),
    wanted: Callable[[TopicRule], bool] = lambda _: True,
) -> None:
    """All derived tables, one after the other; Kafka is not asked.

    Args:
        done: told of each table when it is finished, or cannot be.
        tables: only these, by their path under the lake's root; empty: all.
        wanted: only those of rules of which it is true.

    Raises:
        ConfigError: `tables` names one that is none of them.
    """
    unread: list[UnreadTable] = []
    specs = _by_derived_table(find_tables(settings, open_lake(settings.lake), (), None, unread))
    if unknown := sorted(set(tables) - specs.keys()):
        refuse_unknown(unread)
        raise ConfigError([f"table {name}: no rule's newest_rows names it: see 'topics'" for name in unknown])
    for name, alike in specs.items():
        if any(wanted(spec.rule) for spec in alike) and (not tables or name in tables):
            try:
                found = derived_table(settings, alike[0], name).materialize()
            except KgsError as e:
                found = Materialization(name, problem=str(e), is_history=name == alike[0].history_table)
            done(found)
    for each in unread:
        if each.rule.newest_rows is not None and wanted(each.rule) and not tables:
            done(Materialization(each.table, problem=str(each.error)))


def rows_of(settings: Settings, table: str) -> pa.Table:
    """All rows of a derived table, without those that deletion vectors delete.

    Raises:
        ConfigError: it is not there.
        Exception: it cannot be read, in the words of the store's client.
    """
    found = opened_table(Storage.of(settings.lake), table)
    if found is None:
        raise ConfigError([f"table {table}: not there yet: a consumer makes it"])
    schema = pa.schema(found.schema())
    return pa.concat_tables([schema.empty_table(), *rows_as_read(found, schema)])


def _by_derived_table(specs: Iterable[TableSpec]) -> dict[str, list[TableSpec]]:
    return grouped((table, spec) for spec in specs for table in spec.derived_tables)
