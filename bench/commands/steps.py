"""`bench steps`: how soon a step of the load is known, and what noise, pauses and spikes cost."""

from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median

import click
from rich.console import Console

from bench.commands.options import json_option, write_json
from kgs_core.cli.progress import progress_bar
from kgs_core.cli.terminal import output_console, plain_table

_WIDTH_IN_LOG = 130
_NOISES = (0.1, 0.3)


@click.command("steps", short_help="How soon a step of the load is known, by the window and by its topic's pace.")
@click.option("--partitions", type=click.IntRange(1, 1000), default=80, help="Of the topic.")
@click.option(
    "--speeds",
    "speeds_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Recorded speeds instead, as for kgs simulate; the time between two is that of the first two.",
)
@click.option("--seeds", type=click.IntRange(1, 100), default=5)
@json_option
def bench_steps(*, partitions: int, speeds_file: Path | None, seeds: int, json_file: Path | None) -> None:
    """Generate loads, measure them with a window of 30 s that follows steps or does not, and let a group decide on it.

    No broker; eight consumers' load at first, the packer and its rules as a group has them. Means over the seeds, of
    the seconds until a step is known the median.
    """
    from bench.steps import ESTIMATORS, SHAPES, StepsCase, run_case
    from kgs_core.monitor.speeds.recorded import parse_measurements

    cases = [StepsCase(shape, noise, partitions) for shape in SHAPES for noise in _NOISES]
    if speeds_file is not None:
        found = parse_measurements(speeds_file.read_text(), str(speeds_file))
        interval_s = round(found[1].time - found[0].time) if len(found) > 1 else 1
        speeds = [each.speeds for each in found]
        cases = [
            StepsCase(speeds_file.stem, noise, len(speeds[0]), interval_s * len(speeds), speeds, interval_s)
            for noise in _NOISES
        ]
    columns = ("known after s", "error", "changes/h", "Rscore/h", "above capacity", "p99 s", "consumers")
    table = plain_table("load", "noise", "by", *columns, left=("load", "by"), no_wrap=True)
    rows = []
    with progress_bar("measuring", Console(stderr=True)) as progress:
        for number, case in enumerate(cases):
            progress(number, len(cases))
            for name, follows in ESTIMATORS.items():
                results = [run_case(case, seed, follows_steps=follows) for seed in range(seeds)]
                known = [each.known_s for each in results if each.known_s is not None]
                table.add_row(
                    case.shape,
                    f"{case.noise:.0%}",
                    name,
                    f"{median(known):.0f}" if known else "",
                    f"{fmean(each.error for each in results):.1%}",
                    f"{fmean(each.changes_per_h for each in results):.1f}",
                    f"{fmean(each.rscore_per_h for each in results):.1f}",
                    f"{fmean(each.above for each in results):.2%}",
                    f"{fmean(each.p99_s for each in results):.1f}",
                    f"{fmean(each.consumers for each in results):.1f}",
                )
                about = {"shape": case.shape, "noise": case.noise, "partitions": case.partitions, "by": name}
                rows += [{**about, "seed": seed, **asdict(each)} for seed, each in enumerate(results)]
    output_console(_WIDTH_IN_LOG).print(table)
    write_json(json_file, rows)
