"""Spreads a packing over at least `min_consumers`, with as few moves as it takes."""

import heapq
from collections import Counter
from collections.abc import Iterable

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition
from kgs_core.packing.basics.problem import PackingProblem


def spread(packed: Assignment, problem: PackingProblem) -> Assignment:
    """`packed`, with bins added until there are `min_consumers`, or as many as partitions allow.

    First the consumers that the packing has emptied get their own partitions back, the most loaded one first: under a
    steady load the same consumers go on. Then the most loaded bin that can be is parted in two, again and again. No
    load is above capacity because of it.
    """
    if len(set(packed.values())) >= problem.min_consumers:
        return packed
    assignment = dict(packed)
    _bring_home(assignment, problem)
    _part(assignment, problem)
    return assignment


def _bring_home(assignment: dict[TopicPartition, ConsumerId], problem: PackingProblem) -> None:
    """Give emptied consumers their partitions back, as far as they fit and leave no bin without any."""
    left = Counter(assignment.values())
    emptied: dict[ConsumerId, list[TopicPartition]] = {}
    for partition in problem.decreasing(assignment):
        home = problem.home(partition)
        if home is not None and home not in left:
            emptied.setdefault(home, []).append(partition)
    for home in sorted(emptied, key=lambda c: (-_load(emptied[c], problem), c)):
        if len(left) >= problem.min_consumers:
            return
        load = 0.0
        for partition in emptied[home]:
            speed = problem.speeds[partition]
            if load + speed <= problem.capacity_of(home) and left[assignment[partition]] > 1:
                left.subtract([assignment[partition]])
                left.update([home])
                assignment[partition] = home
                load += speed


def _part(assignment: dict[TopicPartition, ConsumerId], problem: PackingProblem) -> None:
    """Part the most loaded bin that can be, until there are enough."""
    bins: dict[ConsumerId, list[TopicPartition]] = {}
    for partition in problem.decreasing(assignment):
        bins.setdefault(assignment[partition], []).append(partition)
    queue = [(-_load(bins[c], problem), c) for c in bins]
    heapq.heapify(queue)
    while queue and len(bins) < problem.min_consumers:
        _, fullest = heapq.heappop(queue)
        leave = _half(bins[fullest], problem)
        if not leave:
            continue
        stay = set(bins[fullest]).difference(leave)
        new = _new_number(bins.keys(), problem)
        bins[fullest], bins[new] = problem.decreasing(stay), leave
        for consumer in (fullest, new):
            heapq.heappush(queue, (-_load(bins[consumer], problem), consumer))
            assignment.update(dict.fromkeys(bins[consumer], consumer))


def _half(partitions: list[TopicPartition], problem: PackingProblem) -> list[TopicPartition]:
    """Those that leave: pinned ones stay; of the others each, from fast to slow, goes where the load is less."""
    pinned = [p for p in partitions if p in problem.pinned]
    free = [p for p in partitions if p not in problem.pinned]
    stay = _load(pinned, problem), len(pinned)
    leave, leaving = (0.0, 0), []
    for partition in free:
        speed = problem.speeds[partition]
        is_too_much = bool(problem.unlike) and leave[0] + speed > problem.capacity  # of a larger bin's half
        if stay <= leave or is_too_much:
            stay = stay[0] + speed, stay[1] + 1
        else:
            leave = leave[0] + speed, leave[1] + 1
            leaving.append(partition)
    return leaving


def _new_number(taken: Iterable[ConsumerId], problem: PackingProblem) -> ConsumerId:
    used = {*taken, *problem.not_new}
    joined = problem.spares - used
    number = 1
    while number in used:
        number += 1
    return min(joined) if joined else ConsumerId(number)


def _load(partitions: Iterable[TopicPartition], problem: PackingProblem) -> BytesPerSecond:
    return sum(problem.speeds[p] for p in partitions)
