"""`kgs simulate`: what algorithms, and Kafka without them, would have cost on a load. Changes nothing."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from kgs_core.api.replays import comparison
from kgs_core.cli.options import config_option, given_options
from kgs_core.cli.progress import progress_bar
from kgs_core.lake.files.stored_path import named_path
from kgs_core.packing import ALGORITHMS
from kgs_core.simulation.baselines import BASELINES, baseline_help
from kgs_core.simulation.workload import STARTS

if TYPE_CHECKING:
    from kgs_core.cli.simulate.options import SimulateOptions
    from kgs_core.experiments.grid import Grid
    from kgs_core.simulation.comparison import Replayed


@click.command(short_help="Replay a load through packing algorithms, and Kafka without them: consumers, Rscore, moves.")
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    metavar="NAME[,NAME...]|all",
    help=f"Algorithms to replay: {', '.join(ALGORITHMS)}. Separate several by commas or blanks, or repeat; "
    "keep and search also with a setting: search@0.8.  [default: all; with --front none]",
)
@click.argument("more_algorithms", nargs=-1, metavar="[NAME]...")
@click.option("--partitions", type=click.IntRange(1, 1_000_000), default=200)
@click.option("--topics", type=click.IntRange(1, 100_000), default=2, help="Topics that share the partitions.")
@click.option(
    "--delta",
    "deltas",
    default="10",
    metavar="N[,N...]|all",
    help="Greatest change of a speed from one measurement to the next, per cent of C; all: 0,5,10,15,20,25.",
)
@click.option(
    "--start",
    "starts",
    default="uniform",
    metavar="NAME[,NAME...]|all",
    help=f"First speeds: {', '.join(STARTS)} (drawn from 0 to C; all 0; all half of C; all C).",
)
@click.option("--steps", type=click.IntRange(0, 1_000_000), default=500, help="Measurements after the first.")
@click.option("--seed", type=click.IntRange(min=0), default=1, help="First or only seed.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=1, help="Number of seeds; shows means and ranges.")
@click.option(
    "--speeds",
    "speeds_file",
    type=named_path,
    metavar="FILE",
    help='A recorded load instead: JSON lines {"time": s, "speeds": {topic: {"0": bytes/s}}}.',
)
@click.option("--since", metavar="TIME", help="Start of a load that `kgs monitor` published, e.g. 2026-11-15T08:00.")
@click.option("--until", metavar="TIME", help="End, as --since; without an offset both are in UTC.  [default: now]")
@click.option(
    "--capacity", type=float, metavar="BYTES_PER_S", help="Packing capacity C of one consumer.  [default: 1500000]"
)
@click.option("--latency", is_flag=True, help="Also show how late data is read, by the latency model.")
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="NAME[,NAME...]",
    help=f"Also replay Kafka without a packer: {baseline_help()}.",
)
@click.option(
    "--orders",
    type=click.IntRange(0, 1000),
    default=0,
    help=f"{', '.join(each.usage for each in BASELINES.values() if each.shuffled)} also with so many shuffled orders "
    "of the partitions, to show the range of luck.",
)
@click.option(
    "--front",
    is_flag=True,
    help="Also replay `search` along its front, as search@SETTING: from fewest consumers to fewest moves.",
)
@click.option(
    "--interval",
    "interval_s",
    type=float,
    default=30.0,
    metavar="SECONDS",
    help="How long a measurement lasts, in the latency model and in the bill.",
)
@click.option(
    "--cbs/--no-cbs",
    default=True,
    help="Always replay all twelve published algorithms: CBS compares with the best of them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option(
    "--plot", "plot_file", type=click.Path(path_type=Path), metavar="FILE", help="Plot the comparison: .svg or .png."
)
@click.option(
    "--results",
    "results_file",
    type=named_path,
    metavar="FILE",
    help="Write a Parquet file with a row per measurement.",
)
@click.option(
    "--save-speeds", "saved_file", type=named_path, metavar="FILE", help="Write the load of --since as JSON lines."
)
@click.option(
    "--spark",
    "spark_master",
    is_flag=False,
    flag_value="",
    metavar="[MASTER]",
    help="Run as a Spark job, one task per algorithm and load, on MASTER (default: spark.master of the configuration, "
    "or all cores of this machine).",
)
@config_option
@click.pass_context
def simulate(context: click.Context, /, **options: Any) -> None:
    """Replay a load through packing algorithms: consumers, Rscore, moves, latency, and the bill. Changes nothing.

    The load is generated as in the published experiments (random walks, in per cent of the packing capacity C), or
    recorded. Every measurement is packed, beginning with no assignment.

    \b
    CBS          consumers above the best published algorithm's, mean share (cardinal bin score)
    E[R]         mean Rscore: write speed moved / C
    least        fewest consumers that the load can need: ceil(sum of speeds / C)
    latency      model: moved partitions are unread for 5 s, then catch up; the others are always read

    The same options give exactly the same figures, also with --spark.

    \b
    kgs simulate --algorithm all --delta 5 --seeds 5
    kgs simulate --algorithm all --front --delta 5,10,25 --plot front.svg
    kgs simulate --speeds week.jsonl --latency --baseline kafka:24,keda --plot week.svg
    kgs simulate --delta all --start all --spark local[2] --results grid.parquet
    """  # noqa: D301 - \b is click's
    from kgs_core.cli.simulate.options import SimulateOptions, make_request  # numpy: not for every command

    given = SimulateOptions(**options)
    request = make_request(given, given_options(context), os.environ)
    replays = _run(request.grid, given)
    report = comparison(request.names, replays, request.grid.conditions)
    if given.results_file is not None:
        from kgs_core.experiments.results import save_results

        save_results(given.results_file, replays, request.grid.conditions)
    if given.plot_file is not None:
        report.plot().save(given.plot_file)
    if request.hint:
        click.secho(f"note: {request.hint}", fg="yellow", err=True)
    if given.as_json:
        click.echo(json.dumps(report.to_dict(), indent=1, allow_nan=False))
    else:
        from kgs_core.cli.simulate.table import print_report

        print_report(report)


def _run(grid: "Grid", given: "SimulateOptions") -> "list[Replayed]":
    from kgs_core.experiments.grid import run_here

    with progress_bar("replaying", Console(stderr=True), unit="runs") as advance:
        if given.spark_master is None:
            return run_here(grid, advance)
        from kgs_core.cli.simulate.options import spark_settings
        from kgs_core.experiments.spark_runner import run_on_spark

        return run_on_spark(grid, spark_settings(given.spark_master, given.config_file, os.environ), advance)
