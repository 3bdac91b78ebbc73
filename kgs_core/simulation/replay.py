"""One load replayed through one way to share out partitions."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kgs_core.errors import ConfigError
from kgs_core.model import Assignment
from kgs_core.packing import ALGORITHMS, RandomSource, parse_name, rebalanced
from kgs_core.simulation.baselines import baseline_usage, find_baseline
from kgs_core.simulation.latency import LatencyModel, LatencySettings, Stretch
from kgs_core.simulation.strategies import Packer, Strategy
from kgs_core.simulation.workload import DEFAULT_CAPACITY, Workload

READ_SHARE = 1.33
"""What a consumer reads flat out, of C, where none is given: as the latency model has it."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions of every replay of a comparison.

    Attributes:
        capacity_bytes_per_s: C, to tell bytes; speeds themselves may be in any unit.
        latency: settings of the latency model; its interval and pause hold elsewhere, too.
    """

    capacity_bytes_per_s: float = DEFAULT_CAPACITY
    latency: LatencySettings = field(default_factory=LatencySettings)
    record_latency: bool = False


class Step(NamedTuple):
    """Outcome of one measurement.

    Attributes:
        load: sum of all speeds, in consumers of capacity C.
        least: consumers that the load takes whoever reads what: ceil(sum of speeds / C).
        moved: partitions that have another consumer than before.
        stretches: latencies of what was written meanwhile; empty unless recorded.
    """

    partitions: int
    load: float
    least: int
    consumers: int
    rscore: float
    moved: int
    stretches: Sequence[Stretch] = ()


def check_name(name: str) -> None:
    """Raise a `ConfigError` unless there is an algorithm or baseline of this name."""
    if parse_name(name) is None and find_baseline(name) is None:
        raise ConfigError([f"'{name}': write an algorithm ({', '.join(ALGORITHMS)}), {baseline_usage()}"])


def strategy_of(
    name: str, workload: Workload, conditions: Conditions, random: RandomSource, *, shuffled: bool = False
) -> Strategy:
    """What goes by this name, fresh.

    Args:
        random: for algorithms that begin with a shuffled list, and for `shuffled`.
        shuffled: a baseline with the partitions in an order drawn from `random`.

    Raises:
        ConfigError: there is no such algorithm or baseline.
    """
    if found := find_baseline(name):
        baseline, parameter = found
        if shuffled and baseline.shuffled is not None:
            return baseline.shuffled(parameter, workload, random)
        return baseline.begin(parameter, workload, conditions.latency)
    meant = parse_name(name)
    if meant is None:
        raise ConfigError([f"'{name}': no algorithm or baseline"])
    algorithm, consumer_weight = meant
    return Packer(ALGORITHMS[algorithm], workload.capacity, random, consumer_weight)


def replay(workload: Workload, strategy: Strategy, conditions: Conditions) -> Iterator[Step]:
    """One step per measurement; the first assignment starts from nothing."""
    current: Assignment = {}
    model = LatencyModel(conditions.latency, workload.capacity) if conditions.record_latency else None
    for speeds in workload.measurements:
        target, consumers = strategy.place(speeds, current)
        moved = rebalanced(current, target)
        total = math.fsum(speeds.values())
        yield Step(
            partitions=len(speeds),
            load=total / workload.capacity,
            least=math.ceil(total / workload.capacity),
            consumers=consumers,
            rscore=math.fsum(speeds[p] for p in moved) / workload.capacity,
            moved=len(moved),
            stretches=model.take(speeds, target) if model is not None else (),
        )
        current = target
