"""Rscore: the cost of a change of assignment."""

import math

from kgs_core.model import Assignment, BytesPerSecond, TopicPartition, WriteSpeeds


def rebalanced(current: Assignment, target: Assignment) -> list[TopicPartition]:
    """The partitions P_i that have a consumer in both and the two differ, by topic and number."""
    return sorted(p for p, consumer in target.items() if current.get(p, consumer) != consumer)


def rscore(current: Assignment, target: Assignment, speeds: WriteSpeeds, capacity: BytesPerSecond) -> float:
    """Rebalance cost of moving from `current` to `target`; a first assignment costs nothing.

    Returns:
        Dimensionless: consumers' worth of write speed left unread. Rounded once, so no order of addition shows.

    References:
        Landau 2022, section "Rscore", R_i.
    """
    return math.fsum(speeds[p] for p in rebalanced(current, target)) / capacity
