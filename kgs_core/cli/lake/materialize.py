"""`kgs materialize`: derived tables with the newest row of each key."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgs_core.cli.options import config_option
from kgs_core.errors import TransientError
from kgs_core.system.transform_folder import load_client_settings

if TYPE_CHECKING:
    from kgs_core.lake.derived.latest_by_key import Materialization


@click.command()
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of text.")
def materialize(*, tables: tuple[str, ...], config_file: Path, as_json: bool) -> None:
    """Bring derived tables (`latest_by_key` of a rule) up to the tables that they are derived from; all without TABLE.

    What is new is told by the log of the append-only table, and merged in one commit with the position in that log. May
    be killed, run again, and run beside consumers. Kafka is not asked.
    """
    settings = load_client_settings(config_file, os.environ)
    from kgs_core.lake.derived.materialize import materialize_lake

    problems = []

    def show(found: "Materialization") -> None:
        click.echo(json.dumps(asdict(found)) if as_json else _line(found))
        if found.problem:
            problems.append(f"table {found.table}: {found.problem}")

    materialize_lake(settings, show, tables=tables)
    if problems:
        raise TransientError("\n".join(problems))


def _line(found: "Materialization") -> str:
    if found.problem:
        return f"{found.table}: not brought up to date"
    if found.version is None:
        return f"{found.table}: nothing yet to derive it from"
    anew = f", made anew: {found.anew}" if found.anew else ""
    return (
        f"{found.table}: {found.rows:,} rows and {found.tombstones:,} tombstones looked at in {found.commits:,} "
        f"commits, as of version {found.version:,}{anew}"
    )
