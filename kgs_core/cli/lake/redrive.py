"""`kgs redrive`: dead letters parsed again by today's rule."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgs_core.api.configuration import settings_of
from kgs_core.cli.options import config_option

if TYPE_CHECKING:
    from kgs_core.ingest.replay.redrive_result import RedriveResult


@click.command()
@click.argument("table")
@config_option
@click.option("--code", "codes", multiple=True, help="Only letters with this error code, e.g. wrong_type. Repeatable.")
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="Only records of this partition. Repeatable.",
)
@click.option(
    "--since", metavar="TIME", help="Only records written since then, e.g. 2026-11-15T08:00; UTC without an offset."
)
@click.option("--until", metavar="TIME", help="Only records written before then, as --since.")
@click.option("--dry-run", is_flag=True, help="Only report how many would pass, and why the others do not.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def redrive(*, table: str, config_file: Path, dry_run: bool, as_json: bool, **chosen: Any) -> None:
    """Parse the dead letters of TABLE (its path in the lake) again by the current rule; those that pass become rows.

    For records that were refused because of a rule, a parser or a schema that has been fixed. Each becomes a row once,
    even if the command is killed, repeated or run twice at once. Consumers keep running. It needs Kafka only if the
    rule masks fields. The dead letters stay; `kgs audit` knows which have become rows.
    """
    settings = settings_of(config_file)
    from kgs_core.ingest.replay.redrive import Redrive
    from kgs_core.lake.letters.letter_filter import letter_filter

    found = Redrive(settings, table).run(letter_filter(**chosen), dry_run=dry_run)
    if as_json:
        # asdict makes a Counter anew from its pairs, and counts these
        click.echo(json.dumps({**asdict(found), "failed": dict(found.failed)}, indent=2))
    else:
        for line in lines(found, dry_run=dry_run):
            click.echo(line)


def lines(found: "RedriveResult", *, dry_run: bool) -> Iterator[str]:
    """The result for people."""
    verb = "would become" if dry_run else "became"
    yield f"table {found.table}: {found.letters:,} dead letters, {found.passed:,} {verb} {found.rows:,} rows"
    for count, what in (
        (found.done, "were rows already"),
        (found.dropped, "are left out by the transform"),
        (found.unsettled, "are not settled: their records are read again, or lie in an accepted gap"),
    ):
        if count:
            yield f"  {count:,} {what}"
    for code, count in found.failed.most_common():
        yield f"  {count:,} stay, {code}: e.g. {found.examples[code]}"
