"""`bench readings`: what a reading of very many partitions takes."""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from kgs_core.cli.terminal import plain_table

_WIDTH_IN_LOG = 120


@click.command("readings", short_help="Seconds and CPU of the monitor's reading of 10,000 partitions.")
@click.option("--partitions", type=click.IntRange(10, 200_000), default=10_000, show_default=True)
@click.option("--readings", type=click.IntRange(1, 1000), default=8, show_default=True, help="A second apart.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures there.")
def bench_readings(*, partitions: int, readings: int, json_file: Path | None) -> None:
    """Make so many partitions on a broker of its own, and read their sizes and offsets as the monitor does.

    Every tenth second a reading also asks for the topics' ids and the logs' starts. CPU is that of the monitor, not of
    the broker.
    """
    from bench.readings import time_readings
    from kgs_core.system.files import check_writable, write_whole

    if json_file is not None:
        check_writable("--json", json_file)
    with tempfile.TemporaryDirectory(prefix="kgs-bench-") as folder:
        found = time_readings(Path(folder), partitions, readings, lambda text: click.echo(text, err=True))
    table = plain_table("reading", "seconds", "CPU s", "partitions", "unknown", no_wrap=True)
    for number, each in enumerate(found, 1):
        table.add_row(str(number), f"{each.seconds:.2f}", f"{each.cpu_s:.2f}", str(each.partitions), str(each.unknown))
    console = Console()
    (console if console.is_terminal else Console(width=_WIDTH_IN_LOG)).print(table)
    if json_file is not None:
        write_whole(json_file, (json.dumps([asdict(each) for each in found], indent=1) + "\n").encode())
