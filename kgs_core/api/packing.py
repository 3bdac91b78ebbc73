"""`pack`: which consumer reads which partition, from plain values."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from kgs_core.api.values import (
    Partition,
    PerPartition,
    assignment_frame,
    consumers_by_partition,
    number_of,
    plain,
    plain_keys,
    speeds_by_partition,
)
from kgs_core.errors import ConfigError
from kgs_core.packing import ALGORITHMS, PackingProblem, parse_name, rebalanced, rscore
from kgs_core.planning.overload import consumer_loads
from kgs_core.simulation.workload import DEFAULT_CAPACITY

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Packing:
    """Which consumer reads which partition, and what the change costs.

    Attributes:
        assignment: (topic, number) -> consumer, 1, 2, ...
        loads: consumer -> bytes/s.
        moves: partitions that change their consumer.
        rscore: write speed moved / C.
        overloaded: consumers above C: of a partition that is faster alone, or because `max_consumers` binds.
        speeds: what was packed, bytes/s.
        capacity: C, bytes/s.
    """

    algorithm: str
    assignment: Mapping[Partition, int]
    loads: Mapping[int, float]
    moves: tuple[Partition, ...]
    rscore: float
    overloaded: tuple[int, ...]
    speeds: Mapping[Partition, float]
    capacity: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; partitions as `{topic: {"0": consumer}}`, as `kgs plan --current` reads them."""
        nested: dict[str, dict[str, int]] = {}
        for (topic, number), consumer in self.assignment.items():
            nested.setdefault(topic, {})[str(number)] = consumer
        return {
            "algorithm": self.algorithm,
            "capacity": self.capacity,
            "consumers": len(self.loads),
            "assignment": nested,
            "loads": {str(consumer): load for consumer, load in self.loads.items()},
            "moves": [list(each) for each in self.moves],
            "rscore": self.rscore,
            "overloaded": list(self.overloaded),
        }

    def to_frame(self) -> "pd.DataFrame":
        """A row per partition: `consumer`, `bytes_per_s`, `moves`; the index is `topic` and `partition`."""
        return assignment_frame(self.assignment, self.speeds, self.moves)

    def _repr_html_(self) -> str:
        headline = f"{self.algorithm}: {len(self.loads)} consumers, {len(self.moves)} moves, Rscore {self.rscore:.3g}"
        return f"<p>{headline}</p>{self.to_frame().to_html(max_rows=20)}"


def pack(
    speeds: PerPartition,
    *,
    capacity: float = DEFAULT_CAPACITY,
    current: PerPartition | None = None,
    algorithm: str = "search",
    max_consumers: int | None = None,
    seed: int = 0,
) -> Packing:
    """Pack partitions into as few consumers as their write speeds need, with few moves.

    Args:
        speeds: (topic, number) -> bytes/s, >= 0.
        capacity: packing capacity C of one consumer, bytes/s.
        current: (topic, number) -> consumer, as it is now; None: nobody reads yet.
        algorithm: a short name, also with a setting, as in `search@0.9`; see `kgs simulate --help`.
        max_consumers: no more than these; what fits nowhere then goes where the load is least.
        seed: of algorithms that draw numbers: the same seed gives the same packing.

    Raises:
        ConfigError: a name or a partition that cannot be.
        MeasurementError: a speed, capacity or bound that cannot be.
    """
    meant = parse_name(algorithm)
    if meant is None:
        raise ConfigError([f"algorithm '{algorithm}': use one of {', '.join(ALGORITHMS)}"])
    given = speeds_by_partition(speeds, "speeds")
    before = {} if current is None else consumers_by_partition(current, "current")
    problem = PackingProblem(
        given, number_of(capacity, "capacity"), before, max_consumers=max_consumers, consumer_weight=meant[1]
    )
    target = dict(sorted(ALGORITHMS[meant[0]](problem, Random(seed)).items()))  # noqa: S311 - no secret
    loads = consumer_loads(target, given)
    return Packing(
        algorithm=algorithm,
        assignment=plain_keys(target),
        loads={int(consumer): load for consumer, load in loads.items()},
        moves=tuple(map(plain, sorted(rebalanced(before, target)))),
        rscore=rscore(before, target, given, problem.capacity),
        overloaded=tuple(int(consumer) for consumer, load in loads.items() if load > problem.capacity),
        speeds=plain_keys(given),
        capacity=problem.capacity,
    )
