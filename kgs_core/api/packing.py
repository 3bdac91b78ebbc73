"""`pack`: which consumer reads which partition, from plain values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from kgs_core.errors import ConfigError
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.packing import ALGORITHMS, PackingProblem, parse_name, rebalanced, rscore
from kgs_core.planning.overload import consumer_loads
from kgs_core.simulation.workload import DEFAULT_CAPACITY

if TYPE_CHECKING:
    import pandas as pd

Partition = tuple[str, int]
"""Topic and number."""


class PerPartition(Protocol):
    """Values by partition: a mapping, or a pandas Series whose index is topic and number."""

    def items(self) -> Iterable[tuple[Any, Any]]:
        """(topic, number) and value, for each."""
        ...


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
        import pandas as pd

        rows = [(self.assignment[each], self.speeds[each], each in self.moves) for each in self.assignment]
        index = pd.MultiIndex.from_tuples(list(self.assignment), names=["topic", "partition"])
        return pd.DataFrame(rows, index, ["consumer", "bytes_per_s", "moves"])

    def _repr_html_(self) -> str:
        said = f"{self.algorithm}: {len(self.loads)} consumers, {len(self.moves)} moves, Rscore {self.rscore:.3g}"
        return f"<p>{said}</p>{self.to_frame().to_html(max_rows=20)}"


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
    given = {tp: float(speed) for tp, speed in by_partition(speeds, "speeds")}
    now = [] if current is None else by_partition(current, "current")
    before = {tp: ConsumerId(int(consumer)) for tp, consumer in now}
    problem = PackingProblem(given, float(capacity), before, max_consumers=max_consumers, consumer_worth=meant[1])
    target = dict(sorted(ALGORITHMS[meant[0]](problem, Random(seed)).items()))  # noqa: S311 - no secret
    loads = consumer_loads(target, given)
    return Packing(
        algorithm=algorithm,
        assignment={_plain(tp): int(consumer) for tp, consumer in target.items()},
        loads={int(consumer): load for consumer, load in loads.items()},
        moves=tuple(map(_plain, sorted(rebalanced(before, target)))),
        rscore=rscore(before, target, given, problem.capacity),
        overloaded=tuple(int(consumer) for consumer, load in loads.items() if load > problem.capacity),
        speeds={_plain(tp): speed for tp, speed in given.items()},
        capacity=problem.capacity,
    )


def by_partition(values: PerPartition, what: str) -> list[tuple[TopicPartition, Any]]:
    """Keys as partitions; `what` names the argument in messages.

    Raises:
        ConfigError: a key that is no pair of topic and number.
    """
    found = []
    for key, value in values.items():
        if not (isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], str)):  # noqa: PLR2004 - a pair
            raise ConfigError([f"{what}: {key!r}: write a partition as (topic, number)"])
        found.append((TopicPartition(key[0], int(key[1])), value))
    return found


def _plain(tp: TopicPartition) -> Partition:
    return tp.topic, tp.partition
