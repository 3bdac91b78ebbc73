"""`bench reaction`: how soon a struck consumer's partitions are read by others."""

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.commands.options import json_option, names, write_json
from kgs_core.cli.terminal import output_console, plain_table, print_table

if TYPE_CHECKING:
    from bench.reaction import Reaction

_WIDTH_IN_FILE = 120


@click.command("reaction", short_help="Seconds until a killed or frozen consumer's partitions are read by others.")
@click.option("--control", "controls", default="dagster,bare", show_default=True, metavar="NAME,NAME", help="By whom.")
@click.option("--strikes", default="killed,frozen", show_default=True, metavar="KIND,KIND", help="What is done to it.")
@click.option("--count", type=click.IntRange(1, 1000), default=10, show_default=True, help="Strikes of each kind.")
@json_option
def bench_reaction(*, controls: str, strikes: str, count: int, json_file: Path | None) -> None:
    """Strike consumers of the demonstration's group, and measure until others read what they read.

    A real broker, real Spark and, with `dagster`, Dagster's sensor and runs; each strike while the group is at rest
    and has a spare, about half a minute apart.

    \b
    killed     SIGKILL: its fleet is certain of its death
    frozen     SIGSTOP: it is silent, and suspected after membership.suspect_after_s (10 s here)
    """  # noqa: D301 - \b is click's
    from bench.reaction import CONTROLS, STRIKES, run_reactions

    who, kinds = names("--control", controls, tuple(CONTROLS)), names("--strikes", strikes, tuple(STRIKES))
    logging.getLogger("kgs_core").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="kgs-bench-") as folder:
        plan = [kind for kind in kinds for _ in range(count)]
        found = run_reactions(Path(folder), who, plan, lambda text: click.echo(text, err=True))
    print_reactions(found)
    write_json(json_file, [each.to_dict() for each in found])


def print_reactions(found: "Sequence[Reaction]") -> None:
    """A row for each control and strike."""
    table = plain_table("control", "strike", "count", "p50 s", "p90 s", "max s", left=("control", "strike"))
    rows: dict[tuple[str, str], list[float]] = {}
    for each in found:
        rows.setdefault((each.control, each.strike), []).append(each.unread_s)
    for (control, strike), unread_s in rows.items():
        ordered = sorted(unread_s)
        figures = (ordered[len(ordered) // 2], ordered[int(0.9 * (len(ordered) - 1) + 0.5)], ordered[-1])
        table.add_row(control, strike, str(len(ordered)), *(f"{figure:.1f}" for figure in figures))
    print_table(output_console(_WIDTH_IN_FILE), table)
