"""Benchmark of packing: time and outcome, from some partitions to very many."""

import gc
import math
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from statistics import fmean, linear_regression, median
from typing import Any

from kgs_core.model import Assignment, WriteSpeeds
from kgs_core.packing import PackFunction, PackingProblem, RandomSource, rscore
from kgs_core.simulation.comparison import PUBLISHED, cardinal_bin_score
from kgs_core.simulation.latency import LatencyModel, LatencySettings, Stretch
from kgs_core.simulation.pool import LatencyPool, LatencySummary
from kgs_core.simulation.strategies import Packer, Placement
from kgs_core.simulation.streams import generate
from kgs_core.simulation.workload import StreamSpec, Workload

WARM_UP = 2
"""Steps before those that count: from nothing, and the first from an assignment."""
MEASURED_ONCE = 1
"""Steps after those that count: one whose memory is measured."""


@dataclass(frozen=True, slots=True)
class ScaleResult:
    """One algorithm on one generated load. Times are of the algorithm's call alone, its problem being there.

    Attributes:
        consumers: of each step that counts.
        least: mean of the lower bound, ceil(sum of speeds / C).
        rscore: mean of a step: E[R].
        latency: of all that was written in the steps that count.
        times_s: of each step.
        first_call_s: the longer of the steps of the warm-up. The first of all in a process pays for loading compiled
            code, or for compiling.
        memory_bytes: most that one step holds beyond what was there before, per partition, its result included; as
            Python and numpy allocate it (tracemalloc), which repeats to the byte, where the process's resident memory
            shows only what earlier steps have not left behind.
        cbs: cardinal bin score; None unless all published algorithms have packed the same load.
    """

    algorithm: str
    partitions: int
    consumers: Sequence[int]
    least: float
    rscore: float
    latency: LatencySummary
    times_s: Sequence[float]
    first_call_s: float
    memory_bytes: float
    cbs: float | None = None

    @property
    def excess(self) -> float:
        """Consumers over the lower bound, as a share of it."""
        return fmean(self.consumers) / self.least - 1 if self.least else 0.0

    @property
    def median_s(self) -> float:
        """Time of the middle one of the steps that count."""
        return median(self.times_s)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "algorithm": self.algorithm,
            "partitions": self.partitions,
            "steps": len(self.consumers),
            "consumers": fmean(self.consumers),
            "least_consumers": self.least,
            "excess": self.excess,
            "cbs": self.cbs,
            "average_rscore": self.rscore,
            "latency": {**asdict(self.latency), "delayed_share": self.latency.delayed_share},
            "min_s": min(self.times_s),
            "median_s": self.median_s,
            "times_s": list(self.times_s),
            "first_call_s": self.first_call_s,
            "memory_bytes_per_partition": self.memory_bytes,
        }


class _Clock:
    """A `PackFunction` that keeps the time that another one takes."""

    def __init__(self, pack: PackFunction) -> None:
        self._pack = pack
        self.times: list[float] = []

    def __call__(self, problem: PackingProblem, random: RandomSource, /) -> Assignment:
        gc.collect()  # what other steps have left behind is not this one's
        begin = time.perf_counter()
        assignment = self._pack(problem, random)
        self.times.append(time.perf_counter() - begin)
        return assignment


class _Gauge:
    """A `PackFunction` that keeps the most memory that another one holds at a time."""

    def __init__(self, pack: PackFunction) -> None:
        self._pack = pack
        self.peak = 0

    def __call__(self, problem: PackingProblem, random: RandomSource, /) -> Assignment:
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            assignment = self._pack(problem, random)
            self.peak = tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()
        return assignment


def scale_load(partitions: int, delta: int, steps: int, seed: int) -> Workload:
    """The load for a number of partitions: warm-up, `steps` that count, and one whose memory is measured."""
    last = WARM_UP + steps + MEASURED_ONCE - 1  # a stream has one measurement more than it has steps
    spec = StreamSpec(delta, seed=seed, steps=last, partitions=partitions, topics=min(2, partitions))
    return generate(spec, Random(spec.key))  # noqa: S311 - an experiment, no secret


def measure(
    name: str,
    algorithm: PackFunction,
    consumer_weight: float | None,
    load: Workload,
    stepped: Callable[[], None] = lambda: None,
) -> ScaleResult:
    """The steps of `load` one after the other.

    Args:
        name: of the algorithm and its setting.
        load: from `scale_load`.
    """
    gc.collect()
    gc.freeze()  # modules and the load, which stay: they need not be looked through before every step
    try:
        return _measure(name, algorithm, consumer_weight, load, stepped)
    finally:
        gc.unfreeze()


def _measure(
    name: str, algorithm: PackFunction, consumer_weight: float | None, load: Workload, stepped: Callable[[], None]
) -> ScaleResult:
    random = Random(f"{load.key} {name}")  # noqa: S311 - the same
    clock, gauge = _Clock(algorithm), _Gauge(algorithm)
    packer = Packer(clock, load.capacity, random, consumer_weight)
    model = LatencyModel(LatencySettings(), load.capacity)
    current: Assignment = {}
    placements: list[Placement] = []
    prices: list[float] = []
    late: list[list[Stretch]] = []
    for speeds in load.measurements[:-1]:
        placements.append(packer.place(speeds, current))
        prices.append(rscore(current, placements[-1].assignment, speeds, load.capacity))
        current = placements[-1].assignment
        late.append(model.take(speeds, current))
        stepped()
    Packer(gauge, load.capacity, random, consumer_weight).place(load.measurements[-1], current)
    stepped()
    counted = load.measurements[WARM_UP:-1]
    return ScaleResult(
        algorithm=name,
        partitions=len(counted[0]),
        consumers=[placement.consumers for placement in placements[WARM_UP:]],
        least=fmean(_least(speeds, load.capacity) for speeds in counted),
        rscore=fmean(prices[WARM_UP:]),
        latency=LatencyPool(stretch for step in late[WARM_UP:] for stretch in step).summary(),
        times_s=clock.times[WARM_UP:],
        first_call_s=max(clock.times[:WARM_UP]),
        memory_bytes=gauge.peak / len(counted[0]),
    )


def with_scores(results: Iterable[ScaleResult]) -> list[ScaleResult]:
    """Those of one load, each with its cardinal bin score if all published algorithms are among them."""
    found = list(results)
    published = {one.algorithm: one.consumers for one in found if one.algorithm in PUBLISHED}
    if len(published) < len(PUBLISHED):
        return found
    least = [min(numbers) for numbers in zip(*published.values(), strict=True)]
    return [replace(one, cbs=cardinal_bin_score(one.consumers, least)) for one in found]


def growth(results: Sequence[ScaleResult], of: Callable[[ScaleResult], float] | None = None) -> float | None:
    """Exponent b of time ~ partitions^b, by least squares of logarithms; None: less than two sizes.

    Args:
        of: the time that counts; the least of the steps if not given.
    """
    points = [(math.log(one.partitions), math.log((of or _least_time)(one))) for one in results]
    if len({x for x, _ in points}) < 2:  # noqa: PLR2004 - a line takes two points
        return None
    return linear_regression(*zip(*points, strict=True)).slope


def _least_time(result: ScaleResult) -> float:
    return min(result.times_s)


def _least(speeds: WriteSpeeds, capacity: float) -> int:
    return math.ceil(math.fsum(speeds.values()) / capacity)
