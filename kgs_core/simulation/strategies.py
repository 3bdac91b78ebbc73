"""Ways to share out partitions, measurement by measurement: the packing algorithms, and Kafka's own assignment."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds
from kgs_core.packing import DEFAULT_WORTH, PackFunction, PackingProblem, RandomSource, Variation


class Placement(NamedTuple):
    """Placement of partitions during one measurement.

    Attributes:
        consumers: how many run, those that read nothing among them.
    """

    assignment: Assignment
    consumers: int


class Strategy(Protocol):
    """Decides at each measurement, knowing that one and those before."""

    def place(self, speeds: WriteSpeeds, current: Assignment, /) -> Placement:
        """The placement that follows `current`."""
        ...


class Packer:
    """A packing algorithm, asked anew at every measurement.

    It is told how much each speed has varied so far, and of the future nothing.
    """

    def __init__(
        self, pack: PackFunction, capacity: BytesPerSecond, random: RandomSource, worth: float | None = DEFAULT_WORTH
    ) -> None:
        """`worth`: what one consumer is worth in Rscore, for the algorithms that weigh; None: any."""
        self._pack = pack
        self._capacity = capacity
        self._random = random
        self._worth = worth
        self._variation = Variation()

    def place(self, speeds: WriteSpeeds, current: Assignment) -> Placement:
        """The algorithm's packing of these speeds."""
        self._variation.update(speeds)
        past = self._variation
        problem = PackingProblem(
            speeds,
            self._capacity,
            current,
            consumer_worth=self._worth,
            variation=past.deviations(),
            drift=past.drifts(),
        )
        assignment = self._pack(problem, self._random)
        return Placement(assignment, len(set(assignment.values())))


class RoundRobin:
    """Kafka with a fixed number of consumers: partitions are dealt in turn and never moved.

    A partition that comes later is dealt to the consumer whose turn it is.

    References:
        Apache Kafka, javadoc of RoundRobinAssignor. Speeds play no part in it.
    """

    def __init__(self, consumers: int, order: Iterable[TopicPartition]) -> None:
        """Deal the partitions of the first measurement in this order."""
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
