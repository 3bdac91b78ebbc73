"""Consumers of two classes beside those of one, over published loads: `python -m bench.classes`."""

from collections.abc import Mapping
from random import Random
from statistics import fmean

import click

from kgs_core.model import Assignment, ConsumerId, WriteSpeeds
from kgs_core.packing import ALGORITHMS, Classes, PackingProblem, Size, pack_classes, parse_name, rscore
from kgs_core.simulation.streams import generate
from kgs_core.simulation.workload import CAPACITY, StreamSpec, Workload

SIZES = {"small": Size(CAPACITY, 1.0), "large": Size(2.2 * CAPACITY, 2.0)}


@click.command()
@click.option("--partitions", default="10,100", help="Numbers of partitions.")
@click.option("--algorithms", default="mwf,keep,search")
@click.option("--delta", default=5)
@click.option("--steps", default=100)
@click.option("--seeds", default=3)
def bench_classes(partitions: str, algorithms: str, delta: int, steps: int, seeds: int) -> None:
    """Print mean consumers, price and E[R]: small ones alone (C, price 1), large ones (2.2 C, price 2), and both."""
    click.echo("| partitions | algorithm | classes | consumers | price | E[R] |\n|---|---|---|---|---|---|")
    for count in map(int, partitions.split(",")):
        specs = [StreamSpec(partitions=count, topics=1, delta=delta, steps=steps, seed=seed) for seed in range(seeds)]
        loads = [generate(spec, Random(spec.key)) for spec in specs]  # noqa: S311 - no secret
        for algorithm in algorithms.split(","):
            for names in (("small",), ("large",), ("small", "large")):
                sizes = {name: SIZES[name] for name in names}
                runs = [_replayed(load, algorithm, sizes) for load in loads]
                figures = " | ".join(f"{fmean(run[n] for run in runs):.2f}" for n in range(3))
                click.echo(f"| {count} | {algorithm} | {', '.join(names)} | {figures} |")


def _replayed(load: Workload, name: str, sizes: Mapping[str, Size]) -> tuple[float, float, float]:
    """Mean consumers and price of the measurements after the first, and mean Rscore in units of C."""
    algorithm, weight = parse_name(name) or ("search", None)
    current: Assignment = {}
    of: Mapping[ConsumerId, str] = {}
    earlier: WriteSpeeds = {}
    found: list[tuple[float, float, float]] = []
    first = next(iter(sizes.values())).capacity
    for speeds in load.measurements:
        # a consumer of the cheapest class is worth as many moved bytes in each of the three
        worth = None if weight is None else weight * min(size.price for size in sizes.values()) * CAPACITY / first
        problem = PackingProblem(speeds, first, current, consumer_weight=worth, earlier=earlier)
        packed = pack_classes(ALGORITHMS[algorithm], problem, Classes(sizes, of), lambda: Random(0))  # noqa: S311
        price = sum(sizes[one].price for one in packed.classes.values())
        found.append((len(packed.classes), price, rscore(current, packed.assignment, speeds, CAPACITY)))
        current, of, earlier = packed.assignment, packed.classes, speeds
    consumers, prices, moved = zip(*found[1:], strict=True)
    return fmean(consumers), fmean(prices), fmean(moved)


if __name__ == "__main__":
    bench_classes()
