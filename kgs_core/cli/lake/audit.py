"""`kgs audit`: whether every table holds what it must."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console

from kgs_core.api.reports import audit as audit_tables
from kgs_core.cli.options import config_option
from kgs_core.cli.progress import progress_bar
from kgs_core.lake.rule import Fault, LakeAudit, TableAudit
from kgs_core.reporting.audit_json import COUNTED

_HEADINGS = ("table", "rows", "dead letters", "unread", *(fault.words for fault in COUNTED), "")
_ADVICE = {
    Fault.LOST: "the table says that it has read these: fill a new table (another group or table name), compare",
    Fault.DOUBLED: "something writes the table without comparing positions: find it in the table's history, end it",
    Fault.AHEAD: "rows without position will be written once more; a log that is too short must be restored",
    Fault.FOREIGN: "something else writes this table: find it in the table's history, give it a table of its own; if "
    "it is this group under its earlier name: kgs adopt --from-group",
    Fault.DELETED_UNREAD: "these records are gone for good; the partition is stopped until kgs accept-loss",
    Fault.CHANGED: "the rule was changed since, or something else wrote these rows: compare them with the records",
    Fault.STILL_THERE: "kgs erase was cut short, or the table was restored: run kgs erase again",
    Fault.CONTRADICTION: "the table's log was changed by other means than kgs: restore an earlier version",
}

_DERIVED_ADVICE = "newest rows that are wrong: delete their table: `kgs materialize` makes it anew"


@click.command()
@config_option
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only the table of this topic. Repeatable.")
@click.option(
    "--log/--no-log",
    "with_log",
    default=True,
    help="Also read what Kafka still has. Without, Kafka need not run, and holes count as lost.",
)
@click.option(
    "--values",
    "with_values",
    is_flag=True,
    help="Also parse the records that Kafka still has, and compare the rows' values with them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.pass_context
def audit(
    context: click.Context,
    *,
    config_file: Path,
    topics: tuple[str, ...],
    with_log: bool,
    with_values: bool,
    as_json: bool,
) -> None:
    """Check that every record is in its table once: rows against start, position, accepted gaps and Kafka's log.

    Changes nothing, and may run beside consumers. It reports records as:

    \b
    unread          still to be read from Kafka; no fault
    lost            read, but neither a row nor a dead letter; right with `rows: filter`
    doubled         more than one row of a record; right with `rows: any`
    ahead           rows beyond the position
    foreign         rows of no record of the topic
    deleted unread  Kafka deleted them before they were read
    changed         with --values: rows that differ from what the current rule makes of their records

    A table is NOT READ if it is missing although the group has read its topic. Tables of newest rows are compared with
    what their source gives at the same position.

    Exit status: 0 nothing found; 1 something found, or not everything could be read; 2 usage or configuration.
    """  # noqa: D301 - \b is click's
    if with_values and not with_log:
        raise click.UsageError("--values reads the topics: leave out --no-log")
    with progress_bar("reading logs", Console(stderr=True), "offsets") as advance:
        found = audit_tables(
            config_file,
            log=with_log,
            values=with_values,
            topics=topics or None,
            progress=lambda _, done, total: advance(done, total),
        )
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        for line in lines(found):
            click.echo(line)
    if not found.ok:
        context.exit(1)


def lines(found: LakeAudit) -> Iterator[str]:
    """The audit for people: a line per table, below it what is wrong where."""
    if not found.tables:
        yield "no table: no topic that a rule fits, neither in Kafka nor in the lake"
        return
    topics = Counter(table.table for table in found.tables)
    names = (t.table if topics[t.table] == 1 else f"{t.table} of {t.topic}" for t in found.tables)
    cells = [_HEADINGS, *(_cells(name, table) for name, table in zip(names, found.tables, strict=True))]
    widths = [max(len(row[i]) for row in cells) for i in range(len(_HEADINGS))]
    yield _line(_HEADINGS, widths)
    for table, row in zip(found.tables, cells[1:], strict=True):
        yield _line(row, widths)
        yield from _details(table)
    yield from map(str, found.derived)
    if any(each.wrong for each in found.derived):
        yield _DERIVED_ADVICE
    faults = {f.fault for t in found.tables for p in t.partitions for f in p.findings}
    for fault in Fault:
        if fault in faults:
            yield f"{fault.words}: {_ADVICE[fault]}"


def _cells(name: str, table: TableAudit) -> tuple[str, ...]:
    counts = (table.rows, table.dead_letters, table.unread, *(table.count(fault) for fault in COUNTED))
    is_known = table.partitions or not table.problem
    state = (
        "NOT READ" if table.problem else "-" if table.version is None and table.ok else "ok" if table.ok else "WRONG"
    )
    return (name, *(f"{count:,}" if is_known and count is not None else "?" for count in counts), state)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.rjust(width) if 0 < i < len(widths) - 1 else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()


def _details(table: TableAudit) -> Iterator[str]:
    if table.compared is not None:
        yield f"  values of {table.compared:,} rows compared with their records, {table.count(Fault.CHANGED):,} differ"
    if table.problem:
        yield f"  {table.problem}"
    for note in table.notes:
        yield f"  {note}"
    if table.dead_letters and not table.rows:
        yield (
            f"  WARNING: {table.dead_letters:,} dead letters of {table.topic} and no row: fix its rule or the producer"
        )
    several = len({p.stored.topic_id for p in table.partitions}) > 1
    for partition in table.partitions:
        stored = partition.stored
        name = f"{table.topic}:{stored.partition}" + (f" of topic id {stored.topic_id or 'none'}" if several else "")
        for gap in stored.gaps:
            yield f"  {name}: accepted gap {gap.start}-{gap.end - 1}"
        for finding in partition.findings:
            yield f"  {name}: {finding}"
