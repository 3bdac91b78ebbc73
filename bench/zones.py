"""What it takes to read within one's zone: the published streams in three zones, packed at several weights.

`python -m bench.zones` prints the table of docs/packing.md. Leaders are spread over the zones by partition, consumers
by number, as Kubernetes spreads pods. Pure.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from random import Random
from statistics import fmean

import click

from kgs_core.model import Assignment, ConsumerId, WriteSpeeds
from kgs_core.packing import ALGORITHMS, PackingProblem, Zones, near, rscore
from kgs_core.simulation.streams import generate
from kgs_core.simulation.workload import StreamSpec

ZONES = "abc"
WEIGHTS = (0.0, 0.3, 1.0, 1.5, 3.0, 10.0)
ALGORITHM_NAMES = ("keep", "search")
DELTAS, SEEDS, STEPS = (5, 25), (31, 32, 33), 200
_MOST_CONSUMERS = 1000


def replayed(algorithm: str, weight: float, spec: StreamSpec) -> tuple[float, float, float]:
    """Means over a stream: consumers, Rscore of a step, share of the speed that is read across zones."""
    workload = generate(spec, Random(spec.key))  # noqa: S311 - no secret
    partitions = sorted(workload.measurements[0])
    zones = Zones(
        {ConsumerId(number): ZONES[number % len(ZONES)] for number in range(1, _MOST_CONSUMERS)},
        {partition: ZONES[i % len(ZONES)] for i, partition in enumerate(partitions)},
        weight,
    )
    current: Assignment = {}
    earlier: WriteSpeeds = {}
    rows: list[Sequence[float]] = []
    random = Random(1)  # noqa: S311 - no secret
    for speeds in workload.measurements:
        problem = PackingProblem(speeds, workload.capacity, current, earlier=earlier, zones=zones)
        target = near(ALGORITHMS[algorithm](problem, random), problem)
        moved = rscore(current, target, speeds, workload.capacity)
        far = zones.far(target, speeds) or 0.0
        rows.append((len(set(target.values())), moved, far / sum(speeds.values())))
        current, earlier = target, speeds
    consumers, moves, share = (fmean(column) for column in zip(*rows[1:], strict=True))
    return consumers, moves, share


def main() -> None:
    """Print the table."""
    click.echo("| | weight | " + " | ".join(f"delta {d}: consumers | E[R] | across" for d in DELTAS) + " |")
    click.echo("|---" * (2 + 3 * len(DELTAS)) + "|")
    for algorithm, weight in product(ALGORITHM_NAMES, WEIGHTS):
        cells: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
        for delta, seed in product(DELTAS, SEEDS):
            cells[delta].append(replayed(algorithm, weight, StreamSpec(delta, seed=seed, steps=STEPS)))
        means = [tuple(map(fmean, zip(*found, strict=True))) for found in cells.values()]
        shown = [f"{consumers:.1f} | {moves:.1f} | {share:.0%}" for consumers, moves, share in means]
        click.echo(f"| {algorithm} | {weight:g} | " + " | ".join(shown) + " |")


if __name__ == "__main__":
    main()
