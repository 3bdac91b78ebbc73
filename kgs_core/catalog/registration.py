"""Registration of all tables of a lake: who is not there yet, or has other columns, is told to the catalogue.

It keeps nothing of its own: each run compares the tables' logs with what the catalogue says. So it may be killed, run
again and run by two at once, and what could not be done is tried by the next run. Consumers know nothing of it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pkgutil import resolve_name
from random import randrange

from kgs_core.catalog.catalog import Catalog, CatalogEntry, Registration
from kgs_core.catalog.locations import location_of
from kgs_core.config import Settings
from kgs_core.config.catalog import CATALOGS, CatalogSettings
from kgs_core.errors import ConfigError, KgsError, TransientError, one_line
from kgs_core.lake.topics.discovery import UnreadTable, find_tables, refuse_unknown_tables
from kgs_core.lake.topics.factory import open_lake
from kgs_core.ports import Lake

AWAY_AFTER = 2
"""Tables in a row that it had no answer for: the others are not asked for, each would wait as long. So that it is not
the same ones each time, a run begins anywhere among them."""


@dataclass(frozen=True, slots=True)
class TableRegistration:
    """What became of one table.

    Attributes:
        name: in the catalogue; empty where it has none.
        outcome: None: none, for the reason in `problem`.
        problem: what stands in the way; empty: nothing.
        is_answered: whether the catalogue has said what it thinks of it.
    """

    table: str
    name: str
    outcome: Registration | None = None
    problem: str = ""
    is_answered: bool = True


def open_catalog(settings: Settings, section: CatalogSettings) -> Catalog:
    """The catalogue that the settings name; it is not asked yet.

    Raises:
        ConfigError: it cannot be opened.
    """
    catalog: Catalog = resolve_name(CATALOGS[section.kind])(settings, section)
    return catalog


def register_lake(settings: Settings, done: Callable[[TableRegistration], None], tables: Collection[str] = ()) -> None:
    """Register every table of the group that is there, with dead letters and derived ones; Kafka is not asked.

    Args:
        done: told of each table; those that are not there yet are passed over.
        tables: only these, by their path under the lake's root; empty: all.

    Raises:
        ConfigError: no catalogue is configured, or `tables` names a table that is none of them.
        PortError: the lake does not say which tables there are.
    """
    section = settings.catalog
    if section is None:
        raise ConfigError(["no catalogue is configured: give section 'catalog'; `kgs example --all` explains it"])
    with closing(open_catalog(settings, section)) as catalog:
        lake = open_lake(settings.lake)
        unread: list[UnreadTable] = []
        known = [name for spec in find_tables(settings, lake, (), None, unread) for name in spec.all_tables]
        refuse_unknown_tables(tables, known, unread)
        names = _names(section, settings.group, known)
        wanted = [(table, name) for table, name in sorted(names.items()) if not tables or table in tables]
        first = randrange(len(wanted) or 1)  # noqa: S311 - no secret
        for found in register_tables(lake, catalog, dict(wanted[first:] + wanted[:first])):
            done(found)
        for each in unread if not tables else ():
            done(TableRegistration(each.table, "", problem=str(each.error)))


def register_tables(
    lake: Lake, catalog: Catalog, names: Mapping[str, "str | ValueError"]
) -> Iterator[TableRegistration]:
    """Register tables; one that fails harms no other.

    `names`: path of a table -> its name in the catalogue, or why it has none.
    """
    unanswered, away = 0, ""
    for table, name in names.items():
        try:
            pinned = lake.pin(table)
            if pinned is None:
                continue
            described = pinned.description()
        except Exception as e:  # noqa: BLE001 - what the table's library raises passes through
            yield TableRegistration(table, "", problem=f"its log cannot be read: {one_line(e)}")
            continue
        if isinstance(name, ValueError):
            yield TableRegistration(table, "", problem=str(name))
        elif unanswered >= AWAY_AFTER:
            yield TableRegistration(table, name, problem=f"not asked for, since {away}", is_answered=False)
        else:
            found = _register(catalog, table, CatalogEntry(name, location_of(lake.root, table), described))
            unanswered, away = (0, "") if found.is_answered else (unanswered + 1, found.problem)
            yield found


def _register(catalog: Catalog, table: str, entry: CatalogEntry) -> TableRegistration:
    try:
        return TableRegistration(table, entry.name, catalog.register(entry))
    except KgsError as e:
        is_answered = not isinstance(e, TransientError)
        return TableRegistration(table, entry.name, problem=str(e), is_answered=is_answered)


def _names(catalog: CatalogSettings, group: str, tables: Collection[str]) -> dict[str, str | ValueError]:
    """Name of each table in the catalogue; two with one name have none, whichever comes first."""
    found: dict[str, str | ValueError] = {}
    alike: dict[str, list[str]] = {}
    for table in sorted(set(tables)):
        try:
            name = catalog.name_of(group, table)
        except ValueError as e:
            found[table] = e
            continue
        found[table] = name
        alike.setdefault(name, []).append(table)
    for name, several in alike.items():
        if len(several) > 1:
            words = f"would be called {name} there, as others would ({', '.join(several)}): change catalog.name"
            found |= {table: ValueError(words) for table in several}
    return found
