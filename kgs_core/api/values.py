"""Plain values that the face takes and gives: partitions as (topic, number), speeds, consumers, frames of them."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, SupportsFloat, SupportsIndex, TypeVar

from kgs_core.errors import ConfigError
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.monitor.speeds.recorded import MAX_NUMBER

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
Partition = tuple[str, int]
"""Topic and number."""
P = TypeVar("P", bound=Partition)


class PerPartition(Protocol):
    """Values by partition: a mapping, or a pandas Series whose index is topic and number."""

    def items(self) -> Iterable[tuple[Any, Any]]:
        """(topic, number) and value, for each."""
        ...


def speeds_by_partition(values: PerPartition, what: str) -> dict[TopicPartition, float]:
    """Write speeds as numbers; whether they can be, is for their user to say.

    Args:
        values: of each partition.
        what: name of the argument, for messages.

    Raises:
        ConfigError: a key that is no partition, a value that is no number.
    """
    return _by_partition(values, what, float, "give a number")


def consumers_by_partition(values: PerPartition, what: str) -> dict[TopicPartition, ConsumerId]:
    """Consumers by number, 1 and up; see `speeds_by_partition`.

    Raises:
        ConfigError: a key that is no partition, a value that is no consumer's number.
    """
    return _by_partition(values, what, _consumer, f"give the number of a consumer, 1 to {MAX_NUMBER}")


def number_of(value: object, what: str) -> float:
    """A number that was given as an argument.

    Raises:
        ConfigError: it is none.
    """
    if isinstance(value, SupportsFloat):  # numpy's numbers, too; text is none
        return float(value)
    raise ConfigError([f"{what} {value!r}: give a number"])


def plain(partition: TopicPartition) -> Partition:
    """The partition as a plain pair."""
    return partition.topic, partition.partition


def plain_keys(values: Mapping[TopicPartition, T]) -> dict[Partition, T]:
    """The same values, by plain pairs."""
    return {plain(tp): value for tp, value in values.items()}


def assignment_frame(assignment: Mapping[P, int], speeds: Mapping[P, float], moved: Iterable[P]) -> "pd.DataFrame":
    """A row per partition: `consumer`, `bytes_per_s` (NaN: not known), `moves`; the index is `topic`, `partition`."""
    import pandas as pd

    going = frozenset(moved)
    rows = [(consumer, speeds.get(each, math.nan), each in going) for each, consumer in assignment.items()]
    index = pd.MultiIndex.from_tuples([tuple(each) for each in assignment], names=["topic", "partition"])
    return pd.DataFrame(rows, index, ["consumer", "bytes_per_s", "moves"])


def _by_partition(values: PerPartition, what: str, read: Callable[[Any], T], cure: str) -> dict[TopicPartition, T]:
    found = {}
    for key, value in values.items():
        tp = _partition(key)
        if tp is None:
            raise ConfigError([f"{what}: {key!r}: write a partition as (topic, number)"])
        try:
            found[tp] = read(value)
        except (TypeError, ValueError):
            raise ConfigError([f"{what}: {tp}: {value!r}: {cure}"]) from None
    return found


def _partition(key: Any) -> TopicPartition | None:
    if not (isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], str)):  # noqa: PLR2004 - a pair
        return None
    topic, number = key
    # numpy has whole numbers of its own, which a Series gives
    return TopicPartition(topic, int(number)) if isinstance(number, SupportsIndex) and int(number) >= 0 else None


def _consumer(value: Any) -> ConsumerId:
    if isinstance(value, bool | str) or int(value) != value or not 1 <= value <= MAX_NUMBER:
        raise ValueError
    return ConsumerId(int(value))
