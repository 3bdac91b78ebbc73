"""Algorithms of other people: functions of plain values that are made to follow the whole of a packing problem."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from itertools import count
from typing import Any, NoReturn, SupportsIndex

from kgs_core.errors import ConfigError
from kgs_core.model import Assignment, ConsumerId, TopicPartition
from kgs_core.packing.basics.problem import PackFunction, PackingProblem, RandomSource
from kgs_core.packing.basics.spread import spread

ENTRY_POINTS = "kgs.algorithms"
"""Group of entry points: a name, and the function that packs."""

PlainFunction = Callable[[dict[tuple[str, int], float], float, dict[tuple[str, int], int], int], Mapping[Any, Any]]
"""What people write: `pack(speeds, capacity, current, seed) -> {(topic, number): consumer}`.

- speeds: (topic, number) -> bytes/s, >= 0, of every partition that must have a consumer.
- capacity: packing capacity C of one consumer, bytes/s, > 0.
- current: (topic, number) -> consumer, of those of them that somebody reads now.
- seed: a whole number to draw from; the same for the same replay.

The answer gives every partition of `speeds` one consumer, 1 and up. A number that `current` does not have means a new
consumer; which number that one gets is not the function's to say. It must be a function of its arguments alone.
"""


class CustomAlgorithm:
    """A plain function as one of the packing algorithms.

    What the function does not know of is seen to here: pinned partitions stay, new consumers get the numbers of spares
    and none that was quarantined, and the bounds on consumers hold.
    """

    def __init__(self, name: str, function: PlainFunction) -> None:
        self._name = name
        self._function = function

    def __call__(self, problem: PackingProblem, random: RandomSource) -> Assignment:
        """The function's packing. Raises `ConfigError` if its answer is none of these partitions."""
        speeds = {(p.topic, p.partition): problem.speeds[p] for p in sorted(problem.speeds)}
        homes = {p: home for p in sorted(problem.speeds) if (home := problem.home(p)) is not None}
        current = {(p.topic, p.partition): int(home) for p, home in homes.items()}
        answer = self._checked(self._function(speeds, problem.capacity, current, int(random.random() * 2**32)), problem)
        packed = _renumbered(answer, frozenset(homes.values()), problem)
        packed |= {p: homes[p] for p in problem.pinned}
        return spread(_bounded(packed, problem), problem)

    def _checked(self, answer: object, problem: PackingProblem) -> dict[TopicPartition, int]:
        items = getattr(answer, "items", None)
        if items is None:
            self._refuse(f"gave a {type(answer).__name__}: give a mapping {{(topic, number): consumer}}")
        found: dict[TopicPartition, int] = {}
        for key, consumer in items():
            if key not in problem.speeds:
                self._refuse(f"gave {key!r} a consumer, which is not a partition of the load")
            partition = TopicPartition(*key)
            if partition in found:
                self._refuse(f"gave {partition} two consumers")
            if isinstance(consumer, bool) or not isinstance(consumer, SupportsIndex) or int(consumer) < 1:
                self._refuse(f"gave {partition} consumer {consumer!r}: give a whole number, 1 or more")
            found[partition] = int(consumer)
        missing = sorted(problem.speeds.keys() - found.keys())
        if missing:
            self._refuse(f"gave {missing[0]} no consumer: give every partition one")
        return found

    def _refuse(self, what: str) -> NoReturn:
        raise ConfigError([f"algorithm '{self._name}': {what}"])


class _InstalledAlgorithm:
    """An algorithm of an installed package, imported when it first packs."""

    def __init__(self, entry_point: EntryPoint) -> None:
        self._entry_point = entry_point

    def __call__(self, problem: PackingProblem, random: RandomSource) -> Assignment:
        return self._algorithm(problem, random)

    @cached_property
    def _algorithm(self) -> CustomAlgorithm:
        name = self._entry_point.name
        where = f"algorithm '{name}': entry point {self._entry_point.value}"
        try:
            function: PlainFunction = self._entry_point.load()
        except (ImportError, AttributeError) as e:
            raise ConfigError([f"{where}: {e}: fix or remove the package that brings it"]) from e
        if not callable(function):
            raise ConfigError([f"{where}: is not a function: name one that packs"])
        return CustomAlgorithm(name, function)


def installed_algorithms() -> Iterator[tuple[str, PackFunction]]:
    """Names and algorithms that installed packages bring; none of these packages is imported yet."""
    for entry_point in entry_points(group=ENTRY_POINTS):
        yield entry_point.name, _InstalledAlgorithm(entry_point)


def _renumbered(
    answer: Mapping[TopicPartition, int], readers: frozenset[ConsumerId], problem: PackingProblem
) -> dict[TopicPartition, ConsumerId]:
    """New consumers by the numbers of spares, then by the least ones that are free."""
    used = {ConsumerId(number) for number in answer.values()}
    free = (ConsumerId(n) for n in count(1) if ConsumerId(n) not in readers | problem.spares | problem.quarantined)
    spares = iter(sorted(problem.spares - readers - problem.quarantined))
    numbers = {number: number if number in readers else next(spares, None) or next(free) for number in sorted(used)}
    return {partition: numbers[ConsumerId(number)] for partition, number in answer.items()}


def _bounded(packed: Assignment, problem: PackingProblem) -> Assignment:
    """At most `max_consumers`: the fullest stay, and what the others have goes where the load is least."""
    loads: dict[ConsumerId, float] = {}
    for partition, consumer in sorted(packed.items()):
        loads[consumer] = loads.get(consumer, 0.0) + problem.speeds[partition]
    if problem.max_consumers is None or len(loads) <= problem.max_consumers:
        return packed
    holding = {packed[partition] for partition in problem.pinned}
    ranked = sorted(loads, key=lambda consumer: (consumer not in holding, -loads[consumer], consumer))
    stay = {consumer: loads[consumer] for consumer in ranked[: max(problem.max_consumers, len(holding))]}
    found = dict(packed)
    for partition in problem.decreasing(p for p, consumer in packed.items() if consumer not in stay):
        least = min(stay, key=lambda consumer: (stay[consumer], consumer))
        stay[least] += problem.speeds[partition]
        found[partition] = least
    return found
