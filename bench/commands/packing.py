"""`bench packing`: every packer's quality, time and memory from some partitions to very many."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bench.commands.options import json_option, numbers, plot_option, write_json, write_plot
from kgs_core.cli.progress import progress_bar
from kgs_core.errors import ConfigError
from kgs_core.packing import ALGORITHMS, parse_name

if TYPE_CHECKING:
    from bench.packing_run import ScaleResult

SIZES = "200,1000,10000,100000"
MAX_SIZE = 1_000_000
_ALL = "all"
_MOST_STEPS, _LEAST_STEPS, _PARTITIONS_PACKED = 200, 5, 100_000


class GeneratedLoad(NamedTuple):
    """Load that is packed at every size. `steps`: those that count; None: as many as the size allows."""

    steps: int | None
    delta: int
    seed: int

    def steps_at(self, partitions: int) -> int:
        """Many where a step takes a moment, for quality is a mean over steps; few where it takes seconds."""
        return self.steps or min(_MOST_STEPS, max(_LEAST_STEPS, _PARTITIONS_PACKED // partitions))


@click.command("packing", short_help="Quality, time and memory of every packer, 200 to 100,000 partitions.")
@click.option("--sizes", default=SIZES, metavar="N,N", help="Partitions.")
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    metavar="NAME",
    help="Only this one, as in kgs simulate; with commas between, or again and again. All, if not given.",
)
@click.option(
    "--steps",
    type=click.IntRange(1, 1000),
    help="Steps that count.  [default: 200 at 200 partitions, 100 at 1,000, 10 at 10,000, 5 beyond]",
)
@click.option("--delta", type=click.IntRange(0, 100), default=10, help="Greatest change in a step.")
@click.option("--seed", type=int, default=1, help="Of the loads.")
@json_option
@plot_option
def bench_packing(  # noqa: PLR0913 - one per option
    *,
    sizes: str,
    algorithms: tuple[str, ...],
    steps: int | None,
    delta: int,
    seed: int,
    json_file: Path | None,
    plot_file: Path | None,
) -> None:
    """Pack generated loads of several sizes, and show what it comes to and what it takes.

    Each algorithm follows a load of its size from nothing for two steps, which do not count, then for those that do.
    The loads are drawn from the seed: all but the times repeats. Times mean something only while the machine does
    nothing else.

    \b
    over bound   consumers above ceil(sum of speeds / C), which no packer can go below
    CBS          consumers above the best of the twelve published algorithms; only if all of these take part
    E[R]         mean Rscore of a step: write speed moved / C
    latency      model: kept partitions are read on, moved ones are unread for 5 s, then catch up
    least ms     the fastest of the steps that count; median ms: the middle one
    first ms     the slower step of the warm-up; the first of all pays for loading or compiling
    growth       exponent by which the least time has grown since the size before: 1 is linear
    bytes        most memory that a step holds at a time, per partition

    \b
    python -m bench packing --sizes 200,1000
    python -m bench packing --json packing.json --plot packing.svg      (about five minutes)
    """  # noqa: D301 - \b is click's
    from bench.commands.packing_plot import packing_charts
    from bench.commands.packing_table import print_results

    wanted, load = sorted(set(numbers("--sizes", sizes, MAX_SIZE))), GeneratedLoad(steps, delta, seed)
    results = _run(wanted, parse_names(algorithms), load)
    print_results(results)
    write_json(json_file, _figures(results, load))
    write_plot(plot_file, lambda: packing_charts(results))


def run_scale(
    sizes: Sequence[int],
    names: Sequence[str],
    load: GeneratedLoad,
    advance: Callable[[float, float], None],
    begun: Callable[[str], None],
) -> "list[ScaleResult]":
    """Every algorithm at every size.

    Args:
        sizes: partitions.
        names: as `parse_name` takes them.
        load: what is packed.
        advance: told after each step how many are done, and how many there are.
        begun: told at each size what comes.
    """
    from bench.packing_run import MEASURED_ONCE, WARM_UP, measure, scale_load, with_scores

    total = len(names) * sum(WARM_UP + load.steps_at(size) + MEASURED_ONCE for size in sizes)
    done = 0

    def stepped() -> None:
        nonlocal done
        done += 1
        advance(done, total)

    results: list[ScaleResult] = []
    for size in sizes:
        steps = load.steps_at(size)
        begun(f"packing {size:,} partitions: {len(names)} algorithms, {steps} steps each")
        workload = scale_load(size, load.delta, steps, load.seed)
        found = []
        for name in names:
            meant = parse_name(name)
            assert meant is not None  # noqa: S101 - `parse_names` has seen to that
            found.append(measure(name, ALGORITHMS[meant[0]], meant[1], workload, stepped))
        results += with_scores(found)
    return results


def _run(sizes: Sequence[int], names: Sequence[str], load: GeneratedLoad) -> "list[ScaleResult]":
    """With a bar on stderr, or a line for each size where that is no terminal."""
    from rich.console import Console

    errors = Console(stderr=True)

    def say(text: str) -> None:
        if not errors.is_terminal:
            click.echo(text, err=True)

    with progress_bar("packing", errors, unit="steps") as advance:
        return run_scale(sizes, names, load, advance, say)


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


def _figures(results: "Sequence[ScaleResult]", load: GeneratedLoad) -> dict[str, Any]:
    from bench.commands.packing_table import by_algorithm
    from bench.packing_run import growth

    return {
        "delta": load.delta,
        "seed": load.seed,
        "results": [one.to_dict() for one in results],
        "growth": {name: growth(found) for name, found in by_algorithm(results).items()},
    }
