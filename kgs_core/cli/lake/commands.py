"""`kgs maintain`, `kgs accept-loss`, `kgs accept-topic`: what people do to the lake's tables."""

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgs_core.api.configuration import settings_of
from kgs_core.cli.lake.table_lines import show_tables
from kgs_core.cli.options import config_option
from kgs_core.errors import ConfigError, UnsafeError
from kgs_core.model import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from kgs_core.lake.topics.recovery import NewStart
    from kgs_core.ports import Upkeep

_LOSS = re.compile(r"([a-zA-Z0-9._-]{1,249}):(\d{1,10})=(\d{1,19})-(\d{1,19})")
_MAX_OFFSET = 2**63 - 1
_MB = 1_000_000
_yes_option = click.option("--yes", is_flag=True, help="Do it. Default: record nothing.")


@click.command()
@config_option
@click.option(
    "--table", "tables", multiple=True, metavar="TABLE", help="Only this table (its path in the lake). Repeatable."
)
@click.option("--dry-run", is_flag=True, help="Only report what would be removed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of text.")
def maintain(*, config_file: Path, tables: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Compact the lake's tables, and remove what no version of them needs.

    For each table it removes rows older than the rule's `keep`, joins small files, writes a checkpoint, and removes
    expired log entries and files that have belonged to no version for a week (the table's property
    delta.deletedFileRetentionDuration): replaced ones, and those that killed consumers left. Run it every hour;
    consumers keep running.

    Run it from one place at a time. On a local disk a second one refuses to start; in a store both do the same work,
    and no row is lost.
    """
    settings = settings_of(config_file)
    from kgs_core.lake.topics.maintenance import maintain_lake

    shown = show_tables(
        lambda done: maintain_lake(settings, tables, dry_run=dry_run, done=done),
        partial(_line, dry_run=dry_run),
        as_json=as_json,
    )
    if not shown and not as_json:
        click.echo(f"lake {settings.lake.root}: nothing yet to maintain: it has none of these tables")


def _line(upkeep: "Upkeep", *, dry_run: bool) -> str:
    (before, after), (bytes_before, bytes_after) = upkeep.files, upkeep.bytes
    verb = "would remove" if dry_run else "removed"
    ended = f" {upkeep.ended:,} records {'would end' if dry_run else 'ended'} (keep)," if upkeep.ended else ""
    return (
        f"{upkeep.table}:{ended} {before} -> {after} files, {bytes_before / _MB:.1f} -> {bytes_after / _MB:.1f} MB, "
        f"{verb} {upkeep.removed} old files ({upkeep.removed_bytes / _MB:.1f} MB), {upkeep.seconds:.1f} s"
    )


@click.command("accept-loss")
@click.argument("loss", metavar="TOPIC:PARTITION=FROM-TO")
@config_option
@_yes_option
@click.option("--even-if-readable", is_flag=True, help="Also skip records that are still in the log.")
def accept_loss(*, loss: str, config_file: Path, yes: bool, even_if_readable: bool) -> None:
    """Continue at offset TO, and record for good that FROM to TO-1 are not in the table.

    For a partition that is stopped because Kafka deleted records before they were read. The consumer reports FROM and
    TO when it stops, and continues by itself afterwards. FROM must be the table's position. `kgs audit` accepts the
    gap.
    """
    tp, lost = _parse_loss(loss)
    settings = settings_of(config_file)
    _only_with_yes(yes, f"{tp}: offsets {lost.start} to {lost.end - 1} would be given up")
    from kgs_core.lake.topics.recovery import Acceptance

    table = Acceptance(settings).accept_loss(tp, lost, even_if_readable=even_if_readable)
    click.echo(
        f"table {table}: {tp} continues at {lost.end}; recorded: {lost.end - lost.start} offsets, {lost.start} to "
        f"{lost.end - 1}, are not in it"
    )


@click.command("accept-topic")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@config_option
@_yes_option
def accept_topic(*, topics: tuple[str, ...], config_file: Path, yes: bool) -> None:
    """Start over with topics that were recreated, or whose tables are gone.

    Recreated topic: the same table is filled from the new topic, from its first offsets. _topic_id distinguishes its
    rows from the old ones.

    Table gone: consumers refuse a topic whose table is missing although the group has offsets for it in Kafka: the lake
    may have been moved, or is not mounted. This command makes them create a new table and begin at the rule's `start`.
    Do not use it if the old table may come back.
    """
    settings = settings_of(config_file)
    names = ", ".join(topics)
    _only_with_yes(yes, f"topic {names}: would start over, beside the rows of the old topic or without the old table")
    from kgs_core.lake.topics.recovery import Acceptance

    acceptance, refused = Acceptance(settings), []
    for topic in topics:
        try:
            click.echo(_accepted(topic, acceptance.accept_topic(topic)))
        except UnsafeError as e:  # also one that was accepted by this command before, and was cut short
            refused.append(str(e))
    if refused:
        raise UnsafeError("\n".join(refused))


def _accepted(topic: str, start: "NewStart") -> str:
    if not start.earlier:
        return f"table {start.table}: rebuilt when a consumer opens topic {topic}, which begins as its rule says"
    offsets = ", ".join(f"{partition}: {offset}" for partition, offset in start.offsets.items())
    return (
        f"table {start.table}: continues with topic id {start.topic_id} (before: {', '.join(start.earlier)}), "
        f"first offset of each partition: {offsets}"
    )


def _only_with_yes(yes: bool, what: str) -> None:  # noqa: FBT001 - a flag of the command line
    if not yes:
        raise UnsafeError(f"{what}, for good: nothing was recorded: give --yes to do it")


def _parse_loss(text: str) -> tuple[TopicPartition, OffsetRange]:
    match = _LOSS.fullmatch(text)
    if match is None:
        raise ConfigError([f"accept-loss: '{text}': write TOPIC:PARTITION=FROM-TO, e.g. orders:3=1200-1350"])
    topic, partition, start, end = match.group(1), *(int(number) for number in match.groups()[1:])
    if not start < end <= _MAX_OFFSET:
        raise ConfigError([f"accept-loss: '{text}': TO, the offset to continue at, must be greater than FROM"])
    return TopicPartition(topic, partition), OffsetRange(start, end)
