"""Kafka with a fixed number of consumers, to which partitions are dealt in turn."""

from collections.abc import Iterable

from kgs_core.model import Assignment, ConsumerId, TopicPartition, WriteSpeeds
from kgs_core.packing import RandomSource
from kgs_core.simulation.latency import LatencySettings
from kgs_core.simulation.strategies import Baseline, Placement
from kgs_core.simulation.workload import Workload

MAX_CONSUMERS = 100_000


class RoundRobin:
    """Partitions dealt in turn and never moved.

    A partition that comes later is dealt to the consumer whose turn it is.

    References:
        Apache Kafka, javadoc of RoundRobinAssignor. Speeds play no part in it.
    """

    def __init__(self, consumers: int, order: Iterable[TopicPartition]) -> None:
        self._consumers = consumers
        self._home: dict[TopicPartition, ConsumerId] = {}
        for partition in order:
            self._deal(partition)

    def place(self, speeds: WriteSpeeds, _current: Assignment) -> Placement:
        """Everybody where they always were."""
        for partition in speeds:
            if partition not in self._home:
                self._deal(partition)
        return Placement({partition: self._home[partition] for partition in speeds}, self._consumers)

    def _deal(self, partition: TopicPartition) -> None:
        self._home[partition] = ConsumerId(1 + len(self._home) % self._consumers)


def _is_number(parameter: str) -> bool:
    return parameter.isascii() and parameter.isdigit() and 1 <= int(parameter) <= MAX_CONSUMERS


def _begin(consumers: str, workload: Workload, _latency: LatencySettings) -> RoundRobin:
    return RoundRobin(int(consumers), _first_order(workload))


def _shuffled(consumers: str, workload: Workload, random: RandomSource) -> RoundRobin:
    return RoundRobin(int(consumers), sorted(_first_order(workload), key=lambda _: random.random()))


def _first_order(workload: Workload) -> list[TopicPartition]:
    return list(workload.measurements[0]) if workload.measurements else []


ROUND_ROBIN = Baseline("kafka", "so many consumers, round robin", _begin, "CONSUMERS", _is_number, _shuffled)
