"""Placement of what nobody reads: to consumers that have joined, at once, whatever was planned for others."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds
from kgs_core.planning.overload import consumer_loads

CapacityOf = Callable[[ConsumerId], BytesPerSecond]
"""Capacity of each consumer, bytes/s."""


@dataclass(frozen=True, slots=True)
class Readers:
    """Consumers that are there to read, beside what is planned.

    Attributes:
        had: who has each partition, or was to have it last: a move away from there costs, whoever forces it.
        read: partitions that somebody reads.
        joined: consumers that can be given partitions now.
    """

    had: Assignment = field(default_factory=dict)
    read: frozenset[TopicPartition] = frozenset()
    joined: frozenset[ConsumerId] = frozenset()

    def unread(self, partitions: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of `partitions` that nobody reads."""
        return frozenset(partitions) - self.read


def to_joined(
    planned: Assignment, readers: Readers, speeds: WriteSpeeds | None, capacity_of: CapacityOf
) -> dict[TopicPartition, ConsumerId]:
    """`planned`, with what nobody reads given to consumers that have joined, where its own one has not.

    Idle ones first: each takes over all that is planned for one consumer of no more capacity, beginning with the one
    that leaves most unread; this is no packing, for the shares stay as they are. Then, from fast to slow, what fits
    into the room of the others, each partition where it fits most tightly. What fits nowhere stays where it is planned.

    Args:
        planned: partition -> consumer, joined or not.
        speeds: what each partition is packed with; None: not known well enough to pack by, so only the idle take over.
    """
    found = dict(planned)
    unread = readers.unread(planned.keys())
    waiting = {p for p in unread if planned[p] not in readers.joined}
    idle = sorted(readers.joined - set(planned.values()))
    for absent in _by_need(waiting, planned, speeds) if idle else ():
        taker = next((one for one in idle if capacity_of(one) >= capacity_of(absent)), None)
        if taker is not None:
            idle.remove(taker)
            found.update({p: taker for p, consumer in planned.items() if consumer == absent})
    if speeds is not None:
        _fill(found, [p for p in waiting if found[p] not in readers.joined], readers, speeds, capacity_of)
    return found


def pinned_partitions(current: Assignment, speeds: WriteSpeeds, limit_of: CapacityOf) -> frozenset[TopicPartition]:
    """All that need not move: of a consumer above its limit the fastest partition only, so that it goes on reading."""
    loads = consumer_loads(current, speeds)
    fastest: dict[ConsumerId, TopicPartition] = {}
    for partition in sorted(current, key=lambda p: (-speeds[p], p)):
        fastest.setdefault(current[partition], partition)
    return frozenset(p for p, c in current.items() if loads[c] <= limit_of(c) or fastest[c] == p)


def _by_need(waiting: Collection[TopicPartition], planned: Assignment, speeds: WriteSpeeds | None) -> list[ConsumerId]:
    """Consumers that have not joined: who leaves most unread comes first; by number of partitions where that is all."""
    shares = {p: planned[p] for p in waiting}
    weights = consumer_loads(shares, speeds if speeds is not None else dict.fromkeys(shares, 1.0))
    return sorted(weights, key=lambda consumer: (-weights[consumer], consumer))


def _fill(
    found: dict[TopicPartition, ConsumerId],
    waiting: Collection[TopicPartition],
    readers: Readers,
    speeds: WriteSpeeds,
    capacity_of: CapacityOf,
) -> None:
    """Best fit decreasing into the room that joined consumers have."""
    loads: Mapping[ConsumerId, float] = consumer_loads(found, speeds)
    room = {consumer: capacity_of(consumer) - loads.get(consumer, 0.0) for consumer in readers.joined}
    for partition in sorted(waiting, key=lambda p: (-speeds[p], p)):
        fitting = [(room[c], c) for c in room if speeds[partition] <= room[c]]
        if fitting:
            _, taker = min(fitting)
            room[taker] -= speeds[partition]
            found[partition] = taker
