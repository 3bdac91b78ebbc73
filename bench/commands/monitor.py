"""`bench monitor`: how exact measured write speeds are, and how soon they follow a change."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from bench.accuracy import Accuracy, AccuracyPoint, accuracy
from bench.commands.options import json_option, write_json
from kgs_core.cli.progress import progress_bar
from kgs_core.cli.terminal import output_console, plain_table
from kgs_core.config.monitor import MonitorSettings

if TYPE_CHECKING:
    from bench.accuracy_run import LoadCase

_KB = 1000.0
_WIDTH_IN_LOG = 120


@click.command("monitor")
@click.option("--window", "window_s", type=click.FloatRange(3, 600), default=30.0, metavar="SECONDS")
@json_option
@click.option("--svg", "svg_file", type=click.Path(dir_okay=False, path_type=Path), help="Draw the speeds there.")
def bench_monitor(*, window_s: float, json_file: Path | None, svg_file: Path | None) -> None:
    """Compare measured speeds with the growth of the files on a broker's disk, under loads of known shape.

    Starts a broker of its own and writes to it for about two and a half windows: steady, steps up and down, a ramp,
    noise; with compression and without. Shows the time until a speed is within 5 % after a change, and the errors
    against what was really written in the window: after a step the speed is that since the step.
    """
    from bench.accuracy_run import load_cases, run_accuracy
    from kgs_core.system.shutdown import stop_on_signals

    monitor = MonitorSettings(window_s=window_s)
    cases = load_cases(window_s)
    with (
        stop_on_signals() as stop,
        tempfile.TemporaryDirectory(prefix="kgs-bench-") as folder,
        progress_bar("measuring", Console(stderr=True)) as progress,
    ):
        found = run_accuracy(Path(folder), cases, monitor, progress, stop)
    results = {case.name: accuracy(found[case.name], window_s, case.change) for case in cases if found[case.name]}
    _print(cases, results)
    write_json(json_file, _as_json(cases, results, found, monitor))
    if svg_file is not None:
        svg_file.write_text(speeds_picture(found))


def _print(cases: "list[LoadCase]", results: dict[str, Accuracy]) -> None:
    columns = ("load", "within 5 % after s", "steady error", "at most")
    table = plain_table(*columns, left=("load",), no_wrap=True)
    for case in cases:
        if (result := results.get(case.name)) is None:
            continue
        table.add_row(
            case.name,
            "" if result.settled_s is None else f"{result.settled_s:.1f}",
            f"{result.steady_mean:.2%}",
            f"{result.steady_max:.2%}",
        )
    output_console(_WIDTH_IN_LOG).print(table)


def speeds_picture(found: Mapping[str, Sequence[AccuracyPoint]]) -> str:
    """SVG with a panel for each load, speeds in KB/s over seconds."""
    from kgs_core.simulation.charts import Chart, svg

    axes = "time, s", "write speed, KB/s"
    return svg([Chart(name, *axes, lines=_lines(points), x_from_zero=False) for name, points in found.items()])


def _lines(points: Sequence[AccuracyPoint]) -> dict[str, list[tuple[float, float]]]:
    return {
        "written in the last second": [(p.time_s, p.last_second / _KB) for p in points],
        "written in the window": [(p.time_s, p.window / _KB) for p in points],
        "measured": [(p.time_s, p.measured / _KB) for p in points],
    }


def _as_json(
    cases: "list[LoadCase]",
    results: dict[str, Accuracy],
    found: dict[str, list[AccuracyPoint]],
    monitor: MonitorSettings,
) -> dict[str, Any]:
    return {
        "window_s": monitor.window_s,
        "interval_s": monitor.interval_s,
        "cases": [
            {
                "name": case.name,
                "compression": case.compression,
                "change_s": case.change,
                "value_bytes_per_s": case.speeds,
                **asdict(results[case.name]),
                "points": [asdict(point) for point in found[case.name]],
            }
            for case in cases
            if case.name in results
        ],
    }
