"""`bench reproduction`: the published comparison again, from raw results to docs/experiments.md."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from kgs_core.cli.options import config_option
from kgs_core.cli.progress import progress_bar

if TYPE_CHECKING:
    from kgs_core.experiments.grid import Grid
    from kgs_core.simulation.comparison import Replayed
    from kgs_core.simulation.workload import Start

UNIFORM, OTHERS, LATE = "uniform.parquet", "other-starts.parquet", "latency.parquet"
LATE_PARTITIONS, LATE_DELTA = 32, 10
LATE_NAMES = ("mwf", "mbf", "bfd", "kafka:15", "kafka:20", "kafka:24", "keda")
LATE_ORDERS = 5


@dataclass(frozen=True, slots=True)
class PageOptions:
    """The command line."""

    page_file: Path
    images: Path
    results: Path
    seeds: int
    spark_master: str | None
    config_file: Path


@click.command("reproduction", short_help="The published experiments again, and docs/experiments.md from them.")
@click.option("--page", "page_file", type=click.Path(dir_okay=False, path_type=Path), default="docs/experiments.md")
@click.option(
    "--images", type=click.Path(file_okay=False, path_type=Path), default="docs/images", help="A folder for the plots."
)
@click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help=f"A folder for the raw results, {UNIFORM}, {OTHERS} and {LATE}; what is there already is not computed again.",
)
@click.option("--seeds", type=click.IntRange(5, 100), default=5, help="Streams of each kind.")
@click.option(
    "--spark",
    "spark_master",
    is_flag=False,
    flag_value="",
    metavar="[MASTER]",
    help="As a Spark job; see kgs simulate.",
)
@config_option
def bench_reproduction(
    *, page_file: Path, images: Path, results: Path, seeds: int, spark_master: str | None, config_file: Path
) -> None:
    """The published experiments again: twelve algorithms, six deltas, several seeds; writes the page.

    Start `uniform` at every delta, the other three starts at two. Takes about five minutes with --spark on two cores.

    The page compares with the published figures, says whether the published claims hold, and compares latency with
    Kafka's own assignment. All figures are computed from the raw results, a row per measurement.
    """
    from bench.experiments_page import late_picture, pictures, write_page
    from bench.results import load_results
    from kgs_core.experiments.results import save_results
    from kgs_core.simulation.comparison import summarize
    from kgs_core.system.files import check_writable, write_whole

    options = PageOptions(page_file, images, results, seeds, spark_master, config_file)
    for folder in (results, images):
        folder.mkdir(parents=True, exist_ok=True)
    check_writable("--page", page_file)
    found = {}
    for name, make in GRIDS.items():
        file = results / name
        if not file.exists():
            grid = make(seeds)
            save_results(file, _run(grid, options), grid.conditions)
        found[name] = load_results(file)
    main = summarize([*found[UNIFORM][0], *found[OTHERS][0]], found[UNIFORM][1])
    late = summarize(*found[LATE])
    for name, content in {**pictures(main), **late_picture(late)}.items():
        write_whole(images / name, content.encode())
    text = write_page(main, late, os.path.relpath(images, page_file.parent))
    write_whole(page_file, text.encode())
    click.echo(f"{page_file}: from {len(main) + len(late)} replays in {results}")


def uniform_grid(seeds: int) -> "Grid":
    """Start `uniform`: what was published, with several streams of each kind instead of one."""
    from kgs_core.simulation.workload import DELTAS

    return _main_grid(("uniform",), DELTAS, seeds)


def other_starts_grid(seeds: int) -> "Grid":
    """The other start conditions, at two deltas."""
    from bench.experiments_page import OTHER_STARTS_AT
    from kgs_core.simulation.workload import STARTS

    return _main_grid([start for start in STARTS if start != "uniform"], OTHER_STARTS_AT, seeds)


def _main_grid(starts: "Sequence[Start]", deltas: Sequence[int], seeds: int) -> "Grid":
    from kgs_core.experiments.grid import ExperimentRun, Grid
    from kgs_core.simulation.comparison import PUBLISHED
    from kgs_core.simulation.replay import Conditions
    from kgs_core.simulation.workload import StreamSpec

    loads = [StreamSpec(delta, start, seed + 1) for start in starts for delta in deltas for seed in range(seeds)]
    return Grid(tuple(ExperimentRun(name, load) for load in loads for name in PUBLISHED), Conditions())


def late_grid(seeds: int) -> "Grid":
    """A smaller load, some 16 consumers' worth, through packers and through Kafka without one."""
    from kgs_core.experiments.grid import ExperimentRun, Grid
    from kgs_core.simulation.comparison import PUBLISHED
    from kgs_core.simulation.replay import Conditions
    from kgs_core.simulation.workload import StreamSpec

    loads = [StreamSpec(LATE_DELTA, "uniform", seed + 1, partitions=LATE_PARTITIONS) for seed in range(seeds)]
    names = [*LATE_NAMES, *(name for name in PUBLISHED if name not in LATE_NAMES)]
    runs = [ExperimentRun(name, load) for load in loads for name in names]
    kafka = [name for name in names if name.startswith("kafka")]
    runs += [ExperimentRun(name, load, order + 1) for load in loads for name in kafka for order in range(LATE_ORDERS)]
    return Grid(tuple(runs), Conditions(record_latency=True))


GRIDS = {UNIFORM: uniform_grid, OTHERS: other_starts_grid, LATE: late_grid}
"""File of raw results -> what is in it, for a number of seeds."""


def _run(grid: "Grid", options: PageOptions) -> "Sequence[Replayed]":
    from kgs_core.cli.simulate.options import spark_settings
    from kgs_core.experiments.grid import run_here

    with progress_bar("replaying", Console(stderr=True), unit="runs") as advance:
        if options.spark_master is None:
            return run_here(grid, advance)
        from kgs_core.experiments.spark_runner import run_on_spark

        return run_on_spark(grid, spark_settings(options.spark_master, options.config_file, os.environ), advance)
