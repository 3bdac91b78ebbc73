"""`bench memory`: whether the memory of one consumer grows while it works."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.commands.options import ABOVE_0, json_option, write_json
from kgs_core.cli.terminal import output_console, plain_table

if TYPE_CHECKING:
    from bench.memory import MemoryResult

_WIDTH_IN_LOG = 120


@click.command("memory", short_help="Memory of a consumer's driver, JVM and worker over a time, and whether it grows.")
@click.option("--minutes", type=click.FloatRange(0.5, 10_000), default=10.0, help="That count.")
@click.option("--topics", type=click.IntRange(1, 99), default=4, help="Topics, each with a table.")
@click.option("--partitions", type=click.IntRange(1, 100), default=4, help="Of each topic.")
@click.option("--mb-per-s", type=ABOVE_0, default=5.0, help="Written to all topics together.")
@click.option("--batch-mb", type=click.FloatRange(0.1, 1000), default=5.0, help="batch_bytes.")
@click.option("--warm-up", "warm_up_s", type=ABOVE_0, default=120.0, metavar="SECONDS", help="Read before.")
@click.option("--limit", "limit_mb_per_h", type=ABOVE_0, default=100.0, metavar="MB/H", help="Flat below it.")
@json_option
def bench_memory(*, json_file: Path | None, **plan: Any) -> None:
    """Let one consumer read what is written meanwhile, and watch the memory of its processes.

    Broker, Spark and tables are real and its own; memory is resident, sampled every second, by process: the driver,
    its JVM, and Spark's Python workers. The slope is that of a line through twelve medians, with its 95 % interval.

    \b
    flat   the whole interval is below --limit
    grows  the whole interval is above it
    open   the limit is within it: measure for longer
    """  # noqa: D301 - \b is click's
    from bench.memory import MemoryPlan, run_memory_bench

    result = run_memory_bench(MemoryPlan(**plan), lambda line: click.echo(line, err=True))
    print_memory(result)
    write_json(json_file, result.to_dict())


def print_memory(result: "MemoryResult") -> None:
    """A row for each process."""
    table = plain_table("process", "first MB", "last MB", "highest MB", "MB/h", "+-", "verdict", left=("process",))
    for role, found in result.trends.items():
        values = (found.first_mb, found.last_mb, found.highest_mb, found.mb_per_h, found.error_mb_per_h)
        table.add_row(role, *(f"{value:,.1f}" for value in values), found.verdict)
    output_console(_WIDTH_IN_LOG).print(table)
    read = f"{result.records:,} records, {result.consumed_mb:,.0f} MB in {result.batches:,} batches"
    click.echo(f"{read}, {result.seconds:,.0f} s")
