"""Shares of an assignment: what each consumer reads."""

from collections.abc import Mapping

from kgs_core.model import Assignment, ConsumerId, TopicPartition
from kgs_core.planning.kept import kept


@kept
def shares_of(assignment: Assignment) -> Mapping[ConsumerId, frozenset[TopicPartition]]:
    """Consumer -> its partitions; who has none is left out."""
    found: dict[ConsumerId, set[TopicPartition]] = {}
    for partition, consumer in assignment.items():
        found.setdefault(consumer, set()).add(partition)
    return {consumer: frozenset(share) for consumer, share in found.items()}
