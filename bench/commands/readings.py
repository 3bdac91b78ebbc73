"""`bench readings`: what a reading of very many partitions takes."""

import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from bench.commands.options import json_option, write_json
from kgs_core.cli.terminal import output_console, plain_table

_WIDTH_IN_LOG = 120


@click.command("readings", short_help="Seconds and CPU of the monitor's reading of 10,000 partitions.")
@click.option("--partitions", type=click.IntRange(10, 200_000), default=10_000)
@click.option("--readings", type=click.IntRange(1, 1000), default=8, help="A second apart.")
@json_option
def bench_readings(*, partitions: int, readings: int, json_file: Path | None) -> None:
    """Make so many partitions on a broker of its own, and read their sizes and offsets as the monitor does.

    Every tenth second a reading also asks for the topics' ids and the logs' starts. CPU is that of the monitor, not of
    the broker.
    """
    from bench.readings import time_readings

    with tempfile.TemporaryDirectory(prefix="kgs-bench-") as folder:
        found = time_readings(Path(folder), partitions, readings, lambda text: click.echo(text, err=True))
    table = plain_table("reading", "seconds", "CPU s", "partitions", "unknown", no_wrap=True)
    for number, each in enumerate(found, 1):
        table.add_row(str(number), f"{each.seconds:.2f}", f"{each.cpu_s:.2f}", str(each.partitions), str(each.unknown))
    output_console(_WIDTH_IN_LOG).print(table)
    write_json(json_file, [asdict(each) for each in found])
