"""Invariants of assignments and of what consumers own."""

import math
from collections.abc import Collection, Mapping

from kgs_core.group.protocol import Target
from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds, grouped

ROUNDING = 1e-9
"""Sums of the same speeds differ in their last digits with the order of addition; relative to the capacity."""


def check_assignment(
    target: Assignment,
    speeds: WriteSpeeds,
    capacity: BytesPerSecond,
    *,
    max_consumers: int | None = None,
    pinned: Collection[TopicPartition] = (),
    capacities: Mapping[ConsumerId, BytesPerSecond] | None = None,
) -> tuple[str, ...]:
    """S6: every known partition once, and no consumer above capacity without need.

    Above capacity is allowed with one single partition, with none but pinned ones, and while `max_consumers` consumers
    or more are in use.

    Args:
        target: what is checked; as a mapping it cannot name a partition twice.
        speeds: every known partition, at the speeds that the target was made with, bytes/s.
        max_consumers: the bound that the target was made with; None: there was none.
        pinned: partitions that had to stay, because their speed was unknown, or because others were unread.
        capacities: of consumers that have another than `capacity`.

    Returns:
        What is wrong, a line each; empty: nothing.
    """
    problems = [f"{p}: has no consumer" for p in sorted(speeds.keys() - target.keys())]
    problems += [
        f"{p}: consumer {target[p]} reads a partition that is not known" for p in sorted(target.keys() - speeds.keys())
    ]
    problems += [f"{p}: {c} is not a consumer's number" for p, c in sorted(target.items()) if c < 1]
    held = grouped((target[partition], partition) for partition in target.keys() & speeds.keys())
    if max_consumers is not None and len(held) >= max_consumers:
        return tuple(problems)
    for consumer, parts in sorted(held.items()):
        load, limit = math.fsum(speeds[p] for p in parts), (capacities or {}).get(consumer, capacity)
        if load > limit * (1 + ROUNDING) and len(parts) > 1 and not set(pinned).issuperset(parts):
            problems.append(f"consumer {consumer}: {load:g} bytes/s in {len(parts)} partitions is above {limit:g}")
    return tuple(problems)


def check_single_owner(owned: Mapping[str, Collection[TopicPartition]]) -> tuple[str, ...]:
    """S1: no two live incarnations own a partition; a line for each that has several owners."""
    owners = grouped((partition, incarnation) for incarnation in sorted(owned) for partition in set(owned[incarnation]))
    return tuple(f"{p}: owned by {' and '.join(names)}" for p, names in sorted(owners.items()) if len(names) > 1)


def check_target(target: Target, *, max_consumers: int | None = None) -> tuple[str, ...]:
    """S6 of a Target at its own speeds, with what it says of partitions that had to stay."""
    problems = check_assignment(
        target.assignment,
        target.speeds,
        target.capacity,
        max_consumers=max_consumers,
        pinned=target.pinned,
        capacities=target.capacity_of,
    )
    quarantined = sorted(set(target.quarantined) & set(target.consumers))
    return (*problems, *(f"consumer {c} is quarantined, and is to run" for c in quarantined))
