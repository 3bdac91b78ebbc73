"""`kgs complete`: up to which time every record is in its table."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgs_core.api.configuration import settings_of
from kgs_core.cli.options import config_option
from kgs_core.errors import TransientError
from kgs_core.reporting.status_json import completeness_values

if TYPE_CHECKING:
    from kgs_core.lake.rule.completeness import Completeness, Lateness

LOOK_EVERY_S = 2.0


def _moment(_: click.Context, __: click.Parameter, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as e:
        raise click.BadParameter(f"'{text}': give a time, as 2026-11-01T13:00 (UTC) or 2026-11-01T13:00+02:00") from e


@click.command()
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@config_option
@click.option(
    "--at",
    "moment",
    metavar="TIME",
    callback=_moment,
    help="Check whether all records before this time (UTC) are there.",
)
@click.option(
    "--wait",
    "timeout_s",
    is_flag=False,
    flag_value=3600.0,
    type=click.FloatRange(0),
    metavar="[SECONDS]",
    help="With --at: wait until they are, at most SECONDS (an hour by default).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.pass_context
def complete(
    context: click.Context,
    *,
    tables: tuple[str, ...],
    config_file: Path,
    moment: datetime | None,
    timeout_s: float | None,
    as_json: bool,
) -> None:
    """Show up to which time every record is in its table (TABLE: path in the lake), by timestamps of records.

    That is the time of the first unread record, or now if all are read, less `complete_hours.lateness_s` of the rule
    (default 60 s): how much later than its timestamp a record may come. For each TABLE it also shows how late the
    newest rows came. Changes nothing; may run beside consumers.

    Exit status: 0 known, with --at complete; 1 not known, not complete, or no table; 2 usage or configuration.
    """
    if timeout_s is not None and moment is None:
        raise click.UsageError("--wait: give the time to wait for: --at")
    from kgs_core.lake.topics.complete import CompleteView

    with CompleteView(settings_of(config_file)) as view:
        found = _waited_for(lambda: view.wanted(tables), moment, timeout_s or 0.0)
        if tables:
            found = view.with_lateness(found)
    if as_json:
        click.echo(json.dumps([_values(each) for each in found], indent=2))
    else:
        for line in lines(found, moment):
            click.echo(line)
    if not _are(found, moment):
        if timeout_s is not None:
            raise TransientError(f"not complete within {timeout_s:g} s: see `kgs status`")
        context.exit(1)


def _waited_for(
    look: "Callable[[], Sequence[Completeness]]", moment: datetime | None, timeout_s: float
) -> Sequence["Completeness"]:
    """The last look: the first one that finds all complete at `moment`, or that of the end of the time."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            found = look()
            if moment is None or _are(found, moment):
                return found
        except TransientError:
            if time.monotonic() >= deadline:
                raise
        else:
            if time.monotonic() >= deadline:
                return found
        time.sleep(min(LOOK_EVERY_S, max(0.0, deadline - time.monotonic())))


def _are(found: Sequence["Completeness"], moment: datetime | None) -> bool:
    """Whether tables, of which there must be one, are complete at a moment; None: until a known time."""
    return bool(found) and all(each.until if moment is None else each.is_complete_at(moment) for each in found)


def lines(found: Sequence["Completeness"], moment: datetime | None) -> Iterator[str]:
    """A line per table."""
    if not found:
        yield "no table: Kafka has no topic that a rule fits"
    width = max((len(each.table) for each in found), default=0)
    for each in found:
        held = f", held up by {each.held_by}" if each.held_by else ""
        if each.until is None:
            words = f"not known: {each.problem}"
        elif moment is None:
            words = f"complete until {each.until:%Y-%m-%d %H:%M:%S}Z{held}"
        else:
            is_complete = each.is_complete_at(moment)
            at = f"{moment:%Y-%m-%d %H:%M:%S}Z"
            words = f"complete at {at}" if is_complete else f"not yet at {at}, until {each.until:%H:%M:%S}Z{held}"
        yield f"{each.table.ljust(width)}  {words}"
        if each.learnt is not None:
            yield f"{''.ljust(width)}  {_lateness(each.learnt)}"


def _lateness(learnt: "Lateness") -> str:
    since = datetime.fromtimestamp(learnt.since_ms / 1000, UTC)
    shares = f"50 % within {learnt.p50_s:g} s, 99.9 % within {learnt.p999_s:g} s, the latest after {learnt.most_s:g} s"
    return f"of {learnt.rows:,} rows since {since:%Y-%m-%d %H:%M:%S}Z came {shares}"


def _values(each: "Completeness") -> dict[str, object]:
    return completeness_values(each) | {"learnt": asdict(each.learnt) if each.learnt is not None else None}
