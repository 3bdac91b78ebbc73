"""`kgs register`: the lake's tables in a catalogue."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgs_core.api.configuration import settings_of
from kgs_core.cli.lake.table_lines import show_tables
from kgs_core.cli.options import config_option

if TYPE_CHECKING:
    from kgs_core.catalog.registration import TableRegistration


@click.command()
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of text.")
def register(*, tables: tuple[str, ...], config_file: Path, as_json: bool) -> None:
    """Register the lake's tables in the catalogue of section `catalog`; all without TABLE (its path in the lake).

    Existing entries of the same path stay, with their columns updated; another table of the same name is left alone and
    reported. You may kill the command, run it again, twice at once, and beside consumers. It does not need Kafka. Run
    it every quarter of an hour. Exit status 1 if a table could not be registered.
    """
    settings = settings_of(config_file)
    from kgs_core.catalog.registration import register_lake

    show_tables(lambda done: register_lake(settings, done, tables), _line, as_json=as_json)


def _line(found: "TableRegistration") -> str:
    return "" if found.problem else f"{found.table}: {found.outcome} as {found.name}"
