"""`kgs adopt`: tables that change hands, with their positions."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgs_core.api.configuration import settings_of
from kgs_core.cli.options import config_option
from kgs_core.config import Settings
from kgs_core.errors import ConfigError, PortError

if TYPE_CHECKING:
    from kgs_core.lake.handover.migration import TopicMigration

_OFFSET = re.compile(r"([a-zA-Z0-9._-]{1,249}):(\d{1,10})=(\d{1,18})")
_DRY = "nothing was recorded: give --yes to do it"


@dataclass(frozen=True, slots=True)
class _Options:
    """Options of one of two things: a group of another name, or a topic that has moved."""

    config_file: Path
    old_group: str | None
    topics: tuple[str, ...]
    keep_offsets: bool
    given: tuple[str, ...]
    offsets_file: Path | None
    old_id: str | None
    yes: bool

    def __post_init__(self) -> None:
        moves = self.keep_offsets or self.given or self.offsets_file is not None or self.old_id is not None
        if (self.old_group is None) == (not moves):
            raise ConfigError(
                ["kgs adopt: give --from-group OLD; or --topic T with --keep-offsets, --offset or --offsets"]
            )
        if moves and not self.topics:
            raise ConfigError(["kgs adopt: give --topic T: which topic has moved?"])

    def offsets(self) -> dict[str, dict[int, int]]:
        """Topic -> partition -> offset, of those that are given."""
        lines = [*self.given, *(self.offsets_file.read_text().split() if self.offsets_file else ())]
        return _parse(lines, self.topics)


@click.command()
@config_option
@click.option("--from-group", "old_group", metavar="GROUP", help="Previous name of this group.")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only tables of this topic. Repeatable.")
@click.option("--keep-offsets", is_flag=True, help="The topic has moved, and its offsets are unchanged.")
@click.option(
    "--offset", "given", multiple=True, metavar="TOPIC:P=OFFSET", help="Where partition P continues. Repeatable."
)
@click.option(
    "--offsets",
    "offsets_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with TOPIC:P=OFFSET in each line.",
)
@click.option("--from-topic-id", "old_id", metavar="ID", help="The earlier topic id, if the table has several.")
@click.option("--yes", is_flag=True, help="Do it. Default: show what would change.")
def adopt(**options: Any) -> None:
    """Continue to fill tables under another group name, or from a topic that moved to another cluster.

    A renamed group: `kgs adopt --from-group OLD`, with the configuration of the new name, takes over positions, starts
    and accepted gaps of OLD, table by table; consumers of OLD are then refused.

    A topic that moved to another cluster has a new id there. `kgs adopt --topic T --keep-offsets` (or `--offset` for
    each partition), with the configuration of the new cluster, ends the history under the old id and begins one under
    the new id. Nothing is read again, and only what the offsets say is skipped. Restart running consumers afterwards.

    Each table changes in one commit; after a kill, run the same command again.
    """
    chosen = _Options(**options)
    settings = settings_of(chosen.config_file)
    if chosen.old_group is not None:
        _from_group(settings, chosen.old_group, chosen.topics, yes=chosen.yes)
    else:
        _from_cluster(settings, chosen)


def _from_group(settings: Settings, old: str, topics: tuple[str, ...], *, yes: bool) -> None:
    from kgs_core.lake.handover.adoption import GroupAdoption

    adoption = GroupAdoption(settings, old)
    pending = adoption.pending(topics)
    if not pending:
        click.echo(f"group {old} has handed over all its tables already: nothing to do")
        return
    _note_running(settings, old)
    for table in pending:
        if yes:
            adoption.carry_out(table)
        click.echo(
            f"table {table.table}: {', '.join(table.topics)}, positions: {table.positions}: "
            f"{'now' if yes else 'would be'} group {settings.group}'s, no longer {old}'s"
        )
    if not yes:
        click.echo(_DRY)


def _note_running(settings: Settings, old: str) -> None:
    """Say who still reads under the old name: it is refused as soon as a table has changed hands."""
    from kgs_core.runtime.group_status import GroupWatch, has_topics

    try:
        if not has_topics(settings.model_copy(update={"group": old})):
            return  # nobody has ever controlled it
        with GroupWatch(settings.model_copy(update={"group": old})) as group:
            found = group.look(with_lake=False)
    except PortError as e:
        click.echo(f"whether group {old} still runs is not known: {e}", err=True)
        return
    silent_s = settings.membership.suspect_after_s
    running = [line.consumer for line in found.consumers if (age := line.report_age_s) is not None and age < silent_s]
    what = [f"consumers {', '.join(map(str, running))}"] if running else []
    what += ["its controller"] if found.controller_is_heard else []
    if what:
        click.echo(f"group {old} still runs ({', '.join(what)}): end it first, by `kgs stop --wait`", err=True)


def _from_cluster(settings: Settings, chosen: _Options) -> None:
    from kgs_core.lake.handover.migration import Migration

    offsets, migration = chosen.offsets(), Migration(settings)
    moves = [
        migration.plan(topic, offsets.get(topic, {}), keep=chosen.keep_offsets, old_id=chosen.old_id)
        for topic in chosen.topics
    ]
    for move in moves:
        if chosen.yes:
            migration.carry_out(move)
        for line in _lines(move, yes=chosen.yes):
            click.echo(line)
    if not chosen.yes:
        click.echo(_DRY)


def _lines(move: "TopicMigration", *, yes: bool) -> list[str]:
    verb = "goes" if yes else "would go"
    lines = [f"table {move.spec.table}: {verb} on with topic id {move.new_id} (before: {move.old_id})"]
    for p, offset in sorted(move.offsets.items()):
        ended, first = move.ended.get(p), move.logs[p].start
        before = "was not read before" if ended is None else f"ended at {ended}"
        unread = f"; {first} to {offset - 1} of the new log are not read" if offset > first else ""
        lines.append(f"  {move.spec.topic}:{p} {before}, begins at {offset}{unread}")
    gone = sorted(set(move.ended) - set(move.offsets))
    return [*lines, *(f"  {move.spec.topic}:{p} ended at {move.ended[p]}; the new topic has none" for p in gone)]


def _parse(lines: list[str], topics: tuple[str, ...]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    problems = []
    for text in lines:
        match = _OFFSET.fullmatch(text)
        if match is None:
            problems.append(f"adopt: '{text}': write TOPIC:PARTITION=OFFSET, e.g. orders:3=1200")
        elif match.group(1) not in topics:
            problems.append(f"adopt: '{text}': also give --topic {match.group(1)}")
        else:
            found.setdefault(match.group(1), {})[int(match.group(2))] = int(match.group(3))
    if problems:
        raise ConfigError(problems)
    return found
