"""`bench scale`: how the cost of a group grows with its partitions and consumers."""

import logging
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.commands.options import json_option, numbers, write_json
from kgs_core.cli.terminal import output_console, plain_table
from kgs_core.errors import ConfigError

if TYPE_CHECKING:
    from bench.group_scale import GroupSize, ScaleFigures

_MOST_PARTITIONS, _MOST_CONSUMERS = 1_000_000, 9_999
_WIDTH_IN_LOG = 160
_COLUMNS = {
    "first_s": ("first s", ".1f"),
    "readers": ("readers", "d"),
    "step_s": ("step s", ".1f"),
    "step_cpu_s": ("step CPU s", ".1f"),
    "step_moved": ("moved", "d"),
    "steady_cpu": ("steady CPU", ".3f"),
    "steady_loop_ms": ("event ms", ".2f"),
    "member_bytes_per_s": ("members B/s", ".0f"),
    "stored_bytes_per_s": ("group B/s", ".0f"),
    "monitor_bytes_per_s": ("monitor B/s", ".0f"),
}


@click.command("scale", short_help="Seconds, CPU and bytes of a group of 10,000 partitions and 1,000 consumers.")
@click.option("--partitions", default="10000", metavar="N,N", help="One number for each size.")
@click.option("--consumers", default="1000", metavar="N,N", help="One for each of --partitions.")
@click.option("--steady", "steady_s", type=click.FloatRange(1, 3600), default=20.0, metavar="SECONDS")
@json_option
def bench_scale(*, partitions: str, consumers: str, steady_s: float, json_file: Path | None) -> None:
    """Run the real controller with as many members and as much load as you say, and measure it.

    Controller, messages and the broker with the group's topics are real; members are memberships in one process that
    read no data, and the logs' sizes are computed. The load fills seven tenths of the consumers; the step makes
    a tenth of the partitions four times as fast. The monitor's window is 10 s.

    \b
    first s      from the controller's start to the last assignment applied
    step s       from the step of the load to the last assignment applied, the window included
    step CPU s   CPU of the controller's process until then
    steady CPU   its CPU seconds per second while nothing changes, monitor included
    event ms     CPU of the controller's own thread for an event then
    members B/s  reports and heartbeats as encoded
    group B/s    growth of the group's three topics on the broker's disk while nothing changes
    monitor B/s  growth of monitor.writeSpeed there
    growth       exponent in partitions since the size before: 1 is linear
    """  # noqa: D301 - \b is click's
    sizes = parse_group_sizes(partitions, consumers)
    from bench.group_scale import growth, run_scale
    from kgs_core.system.shutdown import stop_on_signals

    logging.getLogger("kgs_core").setLevel(logging.WARNING)  # else a line for every consumer and change
    with stop_on_signals() as stop, tempfile.TemporaryDirectory(prefix="kgs-bench-") as folder:
        found = run_scale(Path(folder), sizes, steady_s, lambda text: click.echo(text, err=True), stop)
    print_scale(found)
    figures = {"sizes": [each.to_dict() for each in found], "growth": [growth(*pair) for pair in pairwise(found)]}
    write_json(json_file, {"steady_s": steady_s, **figures})


def parse_group_sizes(partitions: str, consumers: str) -> "list[GroupSize]":
    """`1000,10000` and `100,1000` as sizes.

    Raises:
        ConfigError: not as many of the one as of the other, or names each that is no number in its limits.
    """
    from bench.group_scale import GroupSize

    of_both = (
        numbers("--partitions", partitions, _MOST_PARTITIONS),
        numbers("--consumers", consumers, _MOST_CONSUMERS),
    )
    if len(of_both[0]) != len(of_both[1]):
        words = f"{len(of_both[1])} numbers for {len(of_both[0])} of --partitions: give as many"
        raise ConfigError([f"--consumers: {words}"])
    return [GroupSize(*size) for size in zip(*of_both, strict=True)]


def print_scale(found: "Sequence[ScaleFigures]") -> None:
    """A row for each size, and between two of them how the figures have grown."""
    from bench.group_scale import growth

    table = plain_table("partitions x consumers", *(title for title, _ in _COLUMNS.values()), no_wrap=True)
    for number, figures in enumerate(found):
        values = figures.to_dict()
        if number:
            exponents = growth(found[number - 1], figures)
            table.add_row("growth", *(f"{exponents[name]:.2f}" if name in exponents else "" for name in _COLUMNS))
        size = f"{figures.partitions} x {figures.consumers}"
        table.add_row(size, *(format(values[name], form) for name, (_, form) in _COLUMNS.items()))
    output_console(_WIDTH_IN_LOG).print(table)
