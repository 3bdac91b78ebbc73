"""`kgs materialize`: derived tables with the newest row of each key."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgs_core.api.configuration import settings_of
from kgs_core.cli.lake.table_lines import show_tables
from kgs_core.cli.options import config_option

if TYPE_CHECKING:
    from kgs_core.lake.derived.latest_by_key import Materialization


@click.command()
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of text.")
def materialize(*, tables: tuple[str, ...], config_file: Path, as_json: bool) -> None:
    """Update derived tables (`newest_rows` of a rule) from their source tables; all without TABLE.

    Consumers do this while they read. Each commit merges new rows of the source table, together with the position in
    its log. You may kill the command, run it again, and run it beside consumers. It does not need Kafka.
    """
    settings = settings_of(config_file)
    from kgs_core.lake.derived.materialize import materialize_lake

    show_tables(lambda done: materialize_lake(settings, done, tables=tables), _line, as_json=as_json)


def _line(found: "Materialization") -> str:
    if found.problem:
        return f"{found.table}: not brought up to date"
    if found.version is None:
        return f"{found.table}: nothing yet to derive it from"
    anew = f", rebuilt: {found.anew}" if found.anew else ""
    return (
        f"{found.table}: {found.rows:,} rows and {found.tombstones:,} tombstones looked at in {found.commits:,} "
        f"commits, as of version {found.version:,}{anew}"
    )
