"""`kgs register`: the lake's tables in a catalogue."""

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
    from kgs_core.catalog.registration import TableRegistration


@click.command()
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of text.")
def register(*, tables: tuple[str, ...], config_file: Path, as_json: bool) -> None:
    """Register the lake's tables in the catalogue of section `catalog`; all without TABLE (its path in the lake).

    What is there at the same place is left, but for columns that have changed; another table of the same name is left
    alone and named. May be killed, run again, run by two at once, and beside consumers, which know nothing of it; Kafka
    is not asked. Run it every quarter of an hour. Exit status 1 where a table could not be registered.
    """
    settings = load_client_settings(config_file, os.environ)
    from kgs_core.catalog.registration import register_lake

    problems = []

    def show(found: "TableRegistration") -> None:
        if as_json:
            click.echo(json.dumps(asdict(found)))
        elif not found.problem:
            click.echo(f"{found.table}: {found.outcome} as {found.name}")
        if found.problem:
            problems.append(f"table {found.table}: {found.problem}")

    register_lake(settings, show, tables)
    if problems:
        raise TransientError("\n".join(problems))
