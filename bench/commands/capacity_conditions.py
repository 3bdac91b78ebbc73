"""`bench capacity`: the paper's capacity test in its three conditions."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from bench.commands.options import ABOVE_0, json_option, plot_option, write_json, write_plot
from kgs_core.cli.terminal import plain_table, print_table
from kgs_core.errors import PermanentError

if TYPE_CHECKING:
    from bench.capacity_conditions import ConditionResult
    from kgs_core.simulation.charts import Chart

_MB = 1e6


@click.command("capacity")
@click.option("--seconds", type=click.FloatRange(min=1), default=60.0, help="Of reading in each.")
@click.option("--scale", type=ABOVE_0, default=1.0, help="Share of the paper's bytes.")
@click.option("--batch-mb", type=ABOVE_0, default=5.0, help="batch_bytes, in 10^6 bytes.")
@plot_option
@json_option
def bench_capacity(
    *, seconds: float, scale: float, batch_mb: float, plot_file: Path | None, json_file: Path | None
) -> None:
    """Whether a consumer has one capacity, whatever it reads: the paper's test in its three conditions.

    Bytes in each partition, partitions and tables differ; records and settings do not (Landau 2022, Table VI). Starts a
    broker of its own, and takes twice the bytes (some 3 GB) in the system's temporary directory. For a consumer of your
    own topics there is `kgs capacity`. Drawn are densities of the rates, as in the paper's figure 10.
    """
    from bench.capacity_conditions import CONDITIONS, ConditionsPlan, run_conditions
    from kgs_core.cli.progress import progress_bar
    from kgs_core.system.shutdown import stop_on_signals

    console = Console(stderr=True)
    with (
        tempfile.TemporaryDirectory(prefix="kgs-bench-") as folder,
        stop_on_signals() as stop,
        progress_bar("reading", console) as progress,
    ):
        conditions = [condition.scaled(scale) for condition in CONDITIONS]
        plan = ConditionsPlan(seconds, round(batch_mb * _MB), conditions)
        results = list(run_conditions(plan, Path(folder), lambda line: click.echo(line, err=True), progress, stop))
    if not results:
        raise PermanentError("bench: stopped before the first condition was read")
    print_result(results)
    write_plot(plot_file, lambda: [density_chart(results)])
    write_json(json_file, [result.to_dict() for result in results])


def print_result(results: "Sequence[ConditionResult]") -> None:
    """As the paper's table, with what was measured beside it."""
    from bench.capacity_conditions import widest_gap

    table = plain_table(
        *("", "total MB", "MB a partition", "partitions", "tables", "rates", "p25 MB/s", "mode MB/s", "p75 MB/s"),
        left=("",),
    )
    for result in results:
        found, rates = result.found, result.rates
        table.add_row(
            result.condition.name,
            f"{found.backlog_bytes / _MB:.0f}",
            f"{found.backlog_bytes / found.partitions / _MB:.2f}",
            str(found.partitions),
            str(found.tables),
            str(len(found.rates)) if found.is_saturated else f"{len(found.rates)}, none full",
            *(f"{rate / _MB:.1f}" for rate in (rates.percentiles[25], rates.mode, rates.percentiles[75])),
        )
    print_table(Console(), table)
    if len(results) > 1:
        click.echo(f"The highest mode is {widest_gap(results):.0%} above the lowest.")


def density_chart(results: "Sequence[ConditionResult]") -> "Chart":
    """Densities of the rates, one line for each condition."""
    from bench.density import density
    from kgs_core.simulation.charts import Chart

    lines = {
        result.condition.name: [(rate / _MB, share * _MB) for rate, share in density(result.found.rates)]
        for result in results
    }
    return Chart("One consumer, flat out", "stored MB/s", "density, 1/(MB/s)", lines=lines)
