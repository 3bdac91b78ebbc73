"""`kgs erase`: records that a person ends, everywhere in the lake."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from kgs_core.api.configuration import settings_of
from kgs_core.cli.options import config_option
from kgs_core.cli.progress import progress_bar

if TYPE_CHECKING:
    from kgs_core.lake.letters.erase import Erasure


@click.command()
@click.argument("table")
@config_option
@click.option("--key", "keys", multiple=True, help="Records with this key in Kafka, as text. Repeatable.")
@click.option("--where", help="Records whose rows fulfil an SQL condition, e.g. \"customer = 'c-17'\".")
@click.option("--dry-run", is_flag=True, help="Only count them.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--now", is_flag=True, help="Remove replaced files at once. This breaks readers of older versions.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def erase(
    *,
    table: str,
    config_file: Path,
    keys: tuple[str, ...],
    where: str | None,
    **flags: bool,
) -> None:
    """Erase records from TABLE (its path in the lake), its side tables, dead letters and newest rows, for good.

    --key also finds dead letters; --where applies to the tables that have the columns of the condition. Files with such
    rows are replaced. Consumers and maintenance keep running. After a kill, run the command again: it finishes what it
    began. `kgs audit` counts erased records and does not report them as lost.

    Kafka still has the records until its retention ends, and so have your backups. Without --now, `kgs maintain`
    removes the replaced files later.
    """
    if bool(keys) == (where is not None):
        raise click.UsageError("give --key or --where")
    settings = settings_of(config_file)
    from kgs_core.lake.letters.erase import Eraser

    console = Console(stderr=True)
    with progress_bar(f"looking at {table}", console, "files") as advance:
        found = Eraser(settings, table, keys=keys, where=where, advance=advance).look()
    if flags["dry_run"]:
        _show(found, as_json=flags["as_json"], lines=found_lines(found))
        return
    if not flags["yes"]:
        for line in found_lines(found):
            click.echo(line, err=True)
        click.confirm("Erase them for good?", abort=True, err=True)
    with progress_bar(f"erasing from {table}", console, "files") as advance:
        done = Eraser(settings, table, keys=keys, where=where, advance=advance).run(now=flags["now"])
    _show(done, as_json=flags["as_json"], lines=done_lines(done))


def _show(done: "Erasure", *, as_json: bool, lines: Iterator[str]) -> None:
    for line in [json.dumps(asdict(done), indent=2, default=str)] if as_json else lines:
        click.echo(line)


def found_lines(found: "Erasure") -> Iterator[str]:
    """What would be erased, for people."""
    yield f"table {found.table}: {found.records:,} records would be erased"
    for table, rows in found.found.items():
        yield f"  {table}: {rows:,} rows"
    yield from _left(found)


def done_lines(done: "Erasure") -> Iterator[str]:
    """What was erased, for people."""
    yield f"table {done.table}: {done.records:,} records erased"
    for each in done.removed:
        if each.rows:
            replaced = f"{len(each.files):,} files replaced"
            yield f"  {each.table}: {each.rows:,} rows, {replaced}; version {each.version} had them"
            yield from (f"    {file}" for file in each.files)
    if done.newest is not None:
        yield f"  {done.newest}: newest rows are up to date"
    yield from _left(done)
    if done.gone_at is None:
        yield f"  removed from the store: {done.vacuumed:,} files"
    else:
        yield f"  in older versions until the first kgs maintain after {done.gone_at:%Y-%m-%d %H:%M} UTC"


def _left(done: "Erasure") -> Iterator[str]:
    for table in done.not_looked_at:
        yield f"  {table}: not looked at, it lacks a column of the condition: use --key for its records"
    if done.unsettled:
        yield f"  {done.unsettled:,} records stay: consumers read them again: run it again when they have"
