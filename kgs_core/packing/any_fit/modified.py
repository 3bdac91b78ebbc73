"""The modified any fit algorithms: consumers are packed, one after the other, rather than partitions."""

from collections.abc import Callable, Sequence

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition
from kgs_core.packing.any_fit.fits import BestFit, WorstFit
from kgs_core.packing.any_fit.open_bins import Fit, OpenConsumers
from kgs_core.packing.basics.problem import PackingProblem, RandomSource, sum_of

SpeedOf = Callable[[Sequence[BytesPerSecond]], BytesPerSecond]


def modified_worst_fit(problem: PackingProblem, _random: RandomSource) -> Assignment:
    """MWF: consumers by cumulative speed, worst fit."""
    return _modified_any_fit(problem, WorstFit(), sum_of)


def modified_best_fit(problem: PackingProblem, _random: RandomSource) -> Assignment:
    """MBF: consumers by cumulative speed, best fit."""
    return _modified_any_fit(problem, BestFit(), sum_of)


def modified_worst_fit_partition(problem: PackingProblem, _random: RandomSource) -> Assignment:
    """MWFP: consumers by their fastest partition, worst fit."""
    return _modified_any_fit(problem, WorstFit(), max)


def modified_best_fit_partition(problem: PackingProblem, _random: RandomSource) -> Assignment:
    """MBFP: consumers by their fastest partition, best fit."""
    return _modified_any_fit(problem, BestFit(), max)


def _modified_any_fit(problem: PackingProblem, fit: Fit, speed_of: SpeedOf) -> Assignment:
    """Algorithm 1.

    References:
        Landau 2022, section "Modified Any Fit", Algorithm 1; N is `opened`, U is `unassigned`, S is `_consumers`.
    """
    opened = OpenConsumers(problem, fit)
    unassigned = [p for p in problem.free_partitions() if problem.home(p) is None]
    for consumer, partitions in _consumers(problem, speed_of):
        too_fast = [p for p in partitions if not problem.may_begin(consumer, p)] if problem.unlike else []
        unassigned += too_fast
        unassigned += _place_consumer(opened, consumer, [p for p in partitions if p not in too_fast])
    return opened.assign_all(problem.decreasing(unassigned))


def _consumers(problem: PackingProblem, speed_of: SpeedOf) -> list[tuple[ConsumerId, list[TopicPartition]]]:
    """Current consumers from the most to the least loaded, each with its partitions from fast to slow."""
    groups: dict[ConsumerId, list[TopicPartition]] = {}
    for partition in problem.decreasing(problem.free_partitions()):
        consumer = problem.home(partition)
        if consumer is not None:
            groups.setdefault(consumer, []).append(partition)
    return sorted(groups.items(), key=lambda group: (-speed_of([problem.speeds[p] for p in group[1]]), group[0]))


def _place_consumer(
    opened: OpenConsumers, consumer: ConsumerId, partitions: list[TopicPartition]
) -> Sequence[TopicPartition]:
    """Lines 4 to 25 of Algorithm 1; returns what is left for the end.

    A consumer that is open beforehand, since it has pinned partitions, is not emptied: it is going to be there.
    """
    rest = list(partitions)
    if not opened.is_open(consumer):
        while rest and opened.assign_open(rest[-1]):
            rest.pop()
        if not rest or not opened.create(consumer, rest[0]):
            return rest
        del rest[0]
    for placed, partition in enumerate(rest):
        if not opened.assign(partition, consumer):
            return rest[placed:]
    return []
