"""One load replayed through one way to share out partitions."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kgs_core.errors import ConfigError
from kgs_core.model import Assignment, TopicPartition
from kgs_core.packing import ALGORITHMS, RandomSource, parse_name, rebalanced
from kgs_core.simulation.keda import Keda, KedaSettings
from kgs_core.simulation.latency import LatencyModel, LatencySettings, Stretch
from kgs_core.simulation.strategies import Packer, RoundRobin, Strategy
from kgs_core.simulation.workload import DEFAULT_CAPACITY, Workload

KAFKA, KEDA = "kafka", "keda"
MAX_KAFKA = 100_000


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions of every replay of a comparison.

    Attributes:
        capacity_bytes_per_s: C, to tell bytes; speeds themselves may be in any unit.
        latency: settings of the latency model; its interval and pause hold elsewhere, too.
        record_latency: whether the model runs.
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
    """Whether there is an algorithm or baseline of this name.

    Raises:
        ConfigError: there is none.
    """
    kind, _, count = name.partition(":")
    if kind == KAFKA and count.isascii() and count.isdigit() and 1 <= int(count) <= MAX_KAFKA:
        return
    if parse_name(name) is None and name != KEDA:
        raise ConfigError([f"'{name}': write an algorithm ({', '.join(ALGORITHMS)}), kafka:CONSUMERS or keda"])


def strategy_of(name: str, workload: Workload, conditions: Conditions, random: RandomSource) -> Strategy:
    """What goes by this name, fresh.

    Args:
        name: as `check_name` takes it.
        workload: what is going to be replayed.
        conditions: of the replay.
        random: for algorithms that begin with a shuffled list.
    """
    kind, _, count = name.partition(":")
    if kind == KAFKA:
        return RoundRobin(int(count), _first_order(workload))
    if kind == KEDA:
        latency = conditions.latency
        share = latency.read_speed / 100
        return Keda(KedaSettings(read_share=share, interval_s=latency.interval_s), workload.capacity)
    meant = parse_name(name)
    if meant is None:
        raise ConfigError([f"'{name}': no algorithm or baseline"])
    algorithm, worth = meant
    return Packer(ALGORITHMS[algorithm], workload.capacity, random, worth)


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


def shuffled_kafka(name: str, workload: Workload, random: RandomSource) -> Strategy:
    """`kafka:k` with the partitions of the first measurement dealt in an order drawn from `random`."""
    order = sorted(_first_order(workload), key=lambda _: random.random())
    return RoundRobin(int(name.partition(":")[2]), order)


def _first_order(workload: Workload) -> list[TopicPartition]:
    return list(workload.measurements[0]) if workload.measurements else []
