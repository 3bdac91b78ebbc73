"""`bench reaction`: how soon a group answers to a death and to a step of its load."""

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.commands.options import json_option, names, plot_option, write_json, write_plot
from kgs_core.cli.terminal import output_console, plain_table, print_table
from kgs_core.model import grouped

if TYPE_CHECKING:
    from bench.reaction import Reaction

_WIDTH_IN_FILE = 120


@click.command("reaction", short_help="Seconds until a death, or a step of the load, is answered.")
@click.option("--control", "controls", default="dagster,bare", metavar="NAME,NAME", help="By whom.")
@click.option("--strikes", default="killed,frozen,doubled,tripled", metavar="KIND,KIND", help="What is done to it.")
@click.option("--count", type=click.IntRange(1, 1000), default=5, help="Strikes of each kind.")
@json_option
@plot_option
def bench_reaction(*, controls: str, strikes: str, count: int, json_file: Path | None, plot_file: Path | None) -> None:
    """Strike the demonstration's group, and measure until each partition has the reader that it shall have.

    A real broker, real Spark and, with `dagster`, Dagster's sensor and runs; each strike while one consumer reads, at
    rest, and one is spare. A plot shows the first step of each kind over time.

    \b
    killed     SIGKILL: its fleet is certain of its death
    frozen     SIGSTOP: it is silent, and suspected after membership.suspect_after_s (10 s here)
    doubled    twice the load, which the spare suffices for
    tripled    three times the load: one more consumer must start
    """  # noqa: D301 - \b is click's
    from bench.reaction import CONTROLS, STRIKES, reaction_charts, run_reactions

    who, kinds = names("--control", controls, tuple(CONTROLS)), names("--strikes", strikes, tuple(STRIKES))
    logging.getLogger("kgs_core").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="kgs-bench-") as folder:
        plan = [kind for kind in kinds for _ in range(count)]
        found = run_reactions(Path(folder), who, plan, lambda text: click.echo(text, err=True))
    print_reactions(found)
    write_json(json_file, [each.to_dict() for each in found])
    write_plot(plot_file, lambda: reaction_charts(found))


def print_reactions(found: "Sequence[Reaction]") -> None:
    """A row for each control and strike; parts of a step are medians."""
    from bench.figures import nearest_rank
    from bench.reaction import PARTS

    names_left = ("control", "strike")
    table = plain_table(*names_left, "count", "p50 s", "p90 s", "max s", *PARTS, left=names_left)
    for (control, strike), group in grouped(((each.control, each.strike), each) for each in found).items():
        ordered = sorted(each.seconds for each in group)
        figures = (nearest_rank(ordered, 0.5), nearest_rank(ordered, 0.9), ordered[-1])
        parts = [nearest_rank(sorted(each.parts[name] for each in group if each.parts), 0.5) for name in PARTS]
        table.add_row(control, strike, str(len(ordered)), *map(_text, (*figures, *parts)))
    print_table(output_console(_WIDTH_IN_FILE), table)


def _text(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f}"
