"""Ways to share out partitions, measurement by measurement: a packing algorithm, or a baseline."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kgs_core.model import Assignment, BytesPerSecond, WriteSpeeds
from kgs_core.packing import DEFAULT_CONSUMER_WEIGHT, PackFunction, PackingProblem, RandomSource
from kgs_core.simulation.latency import LatencySettings
from kgs_core.simulation.workload import Workload


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


@dataclass(frozen=True, slots=True)
class Baseline:
    """A way to share out partitions without a packer; an entry of `kgs_core.simulation.baselines.BASELINES`.

    Attributes:
        name: how it is called, also with a parameter: `name:24`.
        begin: the strategy, fresh, of a parameter that is accepted and a load.
        parameter: what stands after the colon, for help; empty: nothing may.
        accepts: whether this can stand there.
        shuffled: the strategy with the partitions in an order drawn at random; None: their order changes nothing.
    """

    name: str
    about: str
    begin: Callable[[str, Workload, LatencySettings], Strategy]
    parameter: str = ""
    accepts: Callable[[str], bool] = "".__eq__
    shuffled: Callable[[str, Workload, RandomSource], Strategy] | None = None

    @property
    def usage(self) -> str:
        """How its name is written, as `kafka:CONSUMERS`."""
        return f"{self.name}:{self.parameter}" if self.parameter else self.name


class Packer:
    """A packing algorithm, asked anew at every measurement.

    It is told what a group's controller is: the speeds now and at the last packing, which was at the last measurement.
    """

    def __init__(
        self,
        pack: PackFunction,
        capacity: BytesPerSecond,
        random: RandomSource,
        consumer_weight: float | None = DEFAULT_CONSUMER_WEIGHT,
    ) -> None:
        self._pack = pack
        self._capacity = capacity
        self._random = random
        self._consumer_weight = consumer_weight
        self._earlier: WriteSpeeds = {}

    def place(self, speeds: WriteSpeeds, current: Assignment) -> Placement:
        """The algorithm's packing of these speeds."""
        problem = PackingProblem(
            speeds, self._capacity, current, consumer_weight=self._consumer_weight, earlier=self._earlier
        )
        self._earlier = speeds
        assignment = self._pack(problem, self._random)
        return Placement(assignment, len(set(assignment.values())))
