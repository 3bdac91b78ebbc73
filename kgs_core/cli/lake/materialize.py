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
    """Bring derived tables (`newest_rows` of a rule) up to the tables that they are derived from; all without TABLE.

    Consumers do it while they read; this does it by hand. What is new is told by the log of the append-only table, and
    merged in one commit with the position in that log. May be killed, run again, and run beside consumers. Kafka is not
    asked.
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
