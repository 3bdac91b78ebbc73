"""`kgs bench packing-scale`: every packer's quality, time and memory from some partitions to very many."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import click

from kgs_core.cli.progress import progress_bar
from kgs_core.errors import ConfigError
from kgs_core.packing import ALGORITHMS, parse_name

if TYPE_CHECKING:
    from rich.console import Console

    from kgs_core.cli.bench_scale_run import ScaleResult

SIZES = "200,1000,10000,100000"
MAX_SIZE = 1_000_000
_ALL = "all"
_WIDTH_IN_FILE = 140


@click.command("packing-scale")
@click.option("--sizes", default=SIZES, show_default=True, metavar="N,N", help="Partitions.")
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    metavar="NAME",
    help="Only this one, as in kgs simulate; with commas between, or again and again. All, if not given.",
)
@click.option("--steps", type=click.IntRange(1, 1000), default=5, show_default=True, help="Steps that count.")
@click.option("--delta", type=click.IntRange(0, 100), default=10, show_default=True, help="Greatest change in a step.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the loads.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures there.")
@click.option(
    "--plot", "plot_file", type=click.Path(dir_okay=False, path_type=Path), help="Draw times there, .svg or .png."
)
def bench_scale(  # noqa: PLR0913 - one per option
    *,
    sizes: str,
    algorithms: tuple[str, ...],
    steps: int,
    delta: int,
    seed: int,
    json_file: Path | None,
    plot_file: Path | None,
) -> None:
    """Pack generated loads of several sizes, and show what it takes and what it comes to.

    Each algorithm follows a load of its size from nothing for two steps, which do not count, then for those that do.
    Shown are consumers over the lower bound, the Rscore of a step, the least and the median time of one, the longest
    of the warm-up (in which the first of all pays for loading or compiling), the exponent by which the least time has
    grown since the size before, and memory per partition. Times mean something only while the machine does nothing
    else; all else repeats.
    """
    from rich.console import Console

    wanted, names = parse_partitions(sizes), parse_names(algorithms)
    _check_files(json_file, plot_file)
    with progress_bar("packing", Console(stderr=True), unit="loads") as advance:
        results = run_scale(wanted, names, (steps, delta, seed), advance)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH_IN_FILE, force_terminal=False)
    _print(results, console)
    if json_file is not None:
        _write_json(json_file, results, (steps, delta, seed))
    if plot_file is not None:
        _write_plot(plot_file, results)


def run_scale(
    sizes: Sequence[int],
    names: Sequence[str],
    load: tuple[int, int, int],
    advance: Callable[[float, float], None],
) -> "list[ScaleResult]":
    """Every algorithm at every size; `load` is steps, delta and seed."""
    from kgs_core.cli.bench_scale_run import measure, scale_load

    steps, delta, seed = load
    results: list[ScaleResult] = []
    for size in sizes:
        workload = scale_load(size, delta, steps, seed)
        for name in names:
            advance(len(results), len(sizes) * len(names))
            meant = parse_name(name)
            assert meant is not None  # noqa: S101 - `parse_names` has seen to that
            results.append(measure(name, ALGORITHMS[meant[0]], meant[1], workload))
    return results


def parse_partitions(text: str) -> tuple[int, ...]:
    """`200,1000` as sizes, ascending.

    Raises:
        ConfigError: names each that is no number of partitions.
    """
    parts = [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if not (part.isascii() and part.isdigit() and 1 <= int(part) <= MAX_SIZE)]
    if wrong:
        raise ConfigError([f"--sizes: '{part}': write partitions from 1 to {MAX_SIZE}, as 200,1000" for part in wrong])
    return tuple(sorted(set(map(int, parts))))


def parse_names(given: Sequence[str]) -> tuple[str, ...]:
    """The algorithms asked for, each once, in the order given; all of them for none.

    Raises:
        ConfigError: names each that there is not.
    """
    listed = [part.strip() for entry in given for part in entry.split(",") if part.strip()] or [_ALL]
    names = [name for entry in listed for name in (ALGORITHMS if entry == _ALL else (entry,))]
    wrong = [name for name in names if parse_name(name) is None]
    if wrong:
        raise ConfigError([f"--algorithm: '{name}': write {', '.join(ALGORITHMS)} or all" for name in wrong])
    return tuple(dict.fromkeys(names))


def _check_files(json_file: Path | None, plot_file: Path | None) -> None:
    from kgs_core.adapters.whole_file import check_writable

    if plot_file is not None and plot_file.suffix.lower() not in (".svg", ".png"):
        raise ConfigError([f"--plot: {plot_file}: name a file that ends in .svg or .png"])
    for option, path in (("--json", json_file), ("--plot", plot_file)):
        if path is not None:
            check_writable(option, path)


def _of(results: "Sequence[ScaleResult]", name: str) -> "list[ScaleResult]":
    return [one for one in results if one.algorithm == name]


def _names(results: "Sequence[ScaleResult]") -> list[str]:
    return list(dict.fromkeys(one.algorithm for one in results))


def _print(results: "Sequence[ScaleResult]", console: "Console") -> None:
    from rich.table import Table

    from kgs_core.cli.bench_scale_run import growth

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("partitions", "algorithm"):
        table.add_column(name, justify="right" if name == "partitions" else "left", no_wrap=True)
    for name in ("over bound", "Rscore", "least ms", "median ms", "first call ms", "growth", "bytes/partition"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in results:
        smaller = [other for other in _of(results, one.algorithm) if other.partitions < one.partitions]
        grown = growth([smaller[-1], one]) if smaller else None
        table.add_row(
            f"{one.partitions:,}",
            one.algorithm,
            f"{one.excess:.2%}",
            f"{one.rscore:,.2f}",
            f"{min(one.times_s) * 1e3:,.2f}",
            f"{median(one.times_s) * 1e3:,.2f}",
            f"{one.first_call_s * 1e3:,.0f}",
            "" if grown is None else f"{grown:.2f}",
            f"{one.memory_bytes:,.0f}",
        )
    console.print(table)


def _write_json(path: Path, results: "Sequence[ScaleResult]", load: tuple[int, int, int]) -> None:
    from kgs_core.adapters.whole_file import write_whole
    from kgs_core.cli.bench_scale_run import growth

    tree = {
        **dict(zip(("steps", "delta", "seed"), load, strict=True)),
        "results": [one.tree() for one in results],
        "growth": {name: growth(_of(results, name)) for name in _names(results)},
    }
    write_whole(path, (json.dumps(tree, indent=1) + "\n").encode())


def _write_plot(path: Path, results: "Sequence[ScaleResult]") -> None:
    from kgs_core.adapters.whole_file import write_whole
    from kgs_core.cli.bench_scale_plot import scale_picture
    from kgs_core.experiments.figure import svg

    picture = scale_picture(
        {name: [(one.partitions, min(one.times_s)) for one in _of(results, name)] for name in _names(results)}
    )
    if path.suffix.lower() == ".svg":
        write_whole(path, svg(picture).encode())
        return
    from kgs_core.cli.simulate_png import png

    write_whole(path, png(picture))
