"""A plan as plain values for JSON: the same ones for the same plan."""

from typing import Any

from kgs_core.model import Assignment
from kgs_core.planning.overload import FastPartition, Overload
from kgs_core.planning.plan import Alternative, Move, Plan

SPEED_DIGITS = 3
"""Bytes/s are rounded to a thousandth of a byte, half to even."""
RSCORE_DIGITS = 6


def rounded(number: float | None) -> float | None:
    """A speed or a time as JSON has it; None where it is not known."""
    return None if number is None else round(number, SPEED_DIGITS)


def plan_values(plan: Plan) -> dict[str, Any]:
    """A plan as values for JSON: topics by name, partitions and consumers by number, moves from fast to slow.

    Returns:
        {"algorithm", "consumers", "rscore", "assignment": {topic: {partition: consumer}},
        "moves": [{"topic", "partition", "from", "to", "bytes_per_s"}], "load": {consumer: bytes_per_s},
        "overloaded": [...], "alternatives": [...], "choice": text, "held_back": text}. An entry of "overloaded" is a
        partition faster than a consumer ("topic", "partition", "consumer", "bytes_per_s", "cure": {"partitions",
        "capacity_bytes_per_s"}) or a consumer with more than it can read ("consumer", "bytes_per_s", "cure":
        {"consumers", "capacity_bytes_per_s"}).
    """
    return {
        "algorithm": plan.algorithm,
        "consumers": plan.consumers,
        "rscore": round(plan.rscore, RSCORE_DIGITS),
        "assignment": assignment_values(plan.target),
        "moves": [_move(move) for move in plan.moves],
        "load": {str(consumer): _speed(load) for consumer, load in sorted(plan.load.items())},
        "overloaded": [_overload(overload) for overload in plan.overloaded],
        "alternatives": [_alternative(other) for other in plan.alternatives],
        "choice": plan.choice,
        "held_back": plan.held_back,
    }


def assignment_values(assignment: Assignment) -> dict[str, dict[str, int]]:
    """{topic: {partition: consumer}}, by name and by number."""
    topics: dict[str, dict[str, int]] = {}
    for partition, consumer in sorted(assignment.items()):
        topics.setdefault(partition.topic, {})[str(partition.partition)] = consumer
    return topics


def _move(move: Move) -> dict[str, Any]:
    return {
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "from": move.source,
        "to": move.destination,
        "bytes_per_s": _speed(move.bytes_per_s),
    }


def _overload(overload: Overload) -> dict[str, Any]:
    found: dict[str, Any] = {"consumer": overload.consumer, "bytes_per_s": _speed(overload.bytes_per_s)}
    capacity = _speed(overload.capacity_bytes_per_s)
    if isinstance(overload, FastPartition):
        place = {"topic": overload.partition.topic, "partition": overload.partition.partition}
        return {**place, **found, "cure": {"partitions": overload.partitions, "capacity_bytes_per_s": capacity}}
    return {**found, "cure": {"consumers": overload.consumers, "capacity_bytes_per_s": capacity}}


def _alternative(other: Alternative) -> dict[str, Any]:
    return {
        "algorithm": other.algorithm,
        "consumers": other.consumers,
        "rscore": round(other.rscore, RSCORE_DIGITS),
        "moved": other.moved,
        "max_load_bytes_per_s": _speed(other.max_load_bytes_per_s),
    }


def _speed(bytes_per_s: float) -> float:
    return round(float(bytes_per_s), SPEED_DIGITS)
