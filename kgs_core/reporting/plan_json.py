"""A plan as plain values for JSON: the same ones for the same plan."""

from typing import Any

from kgs_core.model import Assignment, by_topic
from kgs_core.planning.overload import FastPartition, Overload
from kgs_core.planning.plan import Plan
from kgs_core.reporting.plain_values import picked, plain

_OF_ALTERNATIVE = ("algorithm", "consumers", "rscore", "moved", "max_load_bytes_per_s")


def plan_values(plan: Plan) -> dict[str, Any]:
    """A plan as values for JSON: topics by name, partitions and consumers by number, moves from fast to slow.

    Returns:
        {"algorithm", "consumers", "rscore", "assignment": {topic: {partition: consumer}},
        "moves": [{"topic", "partition", "from", "to", "bytes_per_s"}], "load": {consumer: bytes_per_s},
        "overloaded": [...], "alternatives": [...], "choice": text, "held_back": text,
        "cross_zone_bytes_per_s": number or null where no zones are known}. An entry of "overloaded" is a partition
        faster than a consumer ("topic", "partition", "consumer", "bytes_per_s", "cure": {"partitions",
        "capacity_bytes_per_s"}) or a consumer with more than it can read ("consumer", "bytes_per_s", "cure":
        {"consumers", "capacity_bytes_per_s"}). Where there are classes of consumers also "classes": {consumer: class},
        "capacities": {consumer: bytes_per_s} and "price" (of all that read, in consumers of the cheapest class).
    """
    of_classes = {"classes": plain(plan.classes), "capacities": plain(plan.capacities), "price": plain(plan.price)}
    return {
        **picked(plan, "algorithm", "consumers", "rscore"),
        "assignment": assignment_values(plan.target),
        "moves": [
            picked(m.partition, "topic", "partition")
            | {"from": m.source, "to": m.destination}
            | picked(m, "bytes_per_s")
            for m in plan.moves
        ],
        "load": plain(plan.load),
        "overloaded": [_overload(overload) for overload in plan.overloaded],
        "alternatives": [picked(other, *_OF_ALTERNATIVE) for other in plan.alternatives],
        **picked(plan, "choice", "held_back", "cross_zone_bytes_per_s"),
        **(of_classes if plan.classes else {}),
    }


def assignment_values(assignment: Assignment) -> dict[str, dict[str, int]]:
    """{topic: {partition: consumer}}, by name and by number."""
    topics = by_topic(dict(sorted(assignment.items())))
    return {topic: {str(number): consumer for number, consumer in of.items()} for topic, of in topics.items()}


def _overload(overload: Overload) -> dict[str, Any]:
    found = picked(overload, "consumer", "bytes_per_s")
    if isinstance(overload, FastPartition):
        place = picked(overload.partition, "topic", "partition")
        return {**place, **found, "cure": picked(overload, "partitions", "capacity_bytes_per_s")}
    return {**found, "cure": picked(overload, "consumers", "capacity_bytes_per_s")}
