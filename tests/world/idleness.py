"""L4: no partition is unread for long while somebody with room has joined. From outside, where the truth is known."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from kgs_core.group.protocol import DesiredState, RunState, Target
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.planning.overload import consumer_loads
from tests.world.consumers import SimConsumer
from tests.world.fleet import SimFleet
from tests.world.topics import Topics


@dataclass(frozen=True, slots=True)
class Powers:
    """Powers of whoever decides, as they are now.

    Attributes:
        decides: a controller lives, and is not frozen.
        packs: there is a measurement, so it is known who has room.
    """

    decides: bool = True
    packs: bool = True


@dataclass(slots=True)
class Idleness:
    """Follows what nobody reads, and who could.

    Time counts while all of this holds: people want the group to run, somebody decides, the consumer that is to read
    the partition is not there, and another one is that reads nothing, or that the newest Target leaves room for it. A
    frozen process counts as reading, and with `strict` no death counts that the fleet cannot confirm: there nothing
    can be done.

    Attributes:
        limit_s: how long that may be so.
        strict: suspicion frees no partition.
    """

    topics: Topics
    fleet: SimFleet
    limit_s: float
    strict: bool
    _since: dict[TopicPartition, float] = field(default_factory=dict)
    _seen: int = 0
    _target: Target | None = None
    _is_wanted: bool = True

    def look(self, powers: Powers) -> Iterator[str]:
        """Partitions that have been unread for too long; each is reported once, until it is read."""
        self._read()
        now = self.topics.clock.now
        idle = set(self._left_unread(powers))
        self._since = {p: self._since.get(p, now) for p in idle}
        for partition in sorted(idle):
            if now - self._since[partition] > self.limit_s:
                self._since[partition] = float("inf")
                yield f"L4 {partition}: unread for more than {self.limit_s:g} s while somebody with room has joined"

    def _read(self) -> None:
        for received in self.topics.history[self._seen :]:
            if isinstance(received.message, Target):
                self._target = received.message
            elif isinstance(received.message, DesiredState):
                self._is_wanted = received.message.state is RunState.RUNNING
        self._seen = len(self.topics.history)

    def _left_unread(self, powers: Powers) -> Iterator[TopicPartition]:
        target = self._target
        if target is None or not (powers.decides and self._is_wanted) or (self.strict and not self._knows_the_dead()):
            return
        read = frozenset[TopicPartition]().union(*(process.owned for process in self.fleet.living()))
        joined = [process for process in self.fleet.living() if self._could_read(process)]
        numbers = {process.consumer for process in joined}
        loads = consumer_loads(target.assignment, target.speeds)
        room = {c: target.capacity - loads[c] if c in loads else float("inf") for c in numbers}
        if not powers.packs:
            room = {c: left for c, left in room.items() if c not in loads}
        for partition, consumer in target.assignment.items():
            if partition not in read and self._is_absent(consumer) and _fits(target.speeds[partition], room.values()):
                yield partition

    def _could_read(self, process: SimConsumer) -> bool:
        is_alone = len(self.fleet.of(process.consumer)) == 1
        return is_alone and not process.is_frozen and process.is_at_rest

    def _is_absent(self, consumer: ConsumerId) -> bool:
        return all(process.membership is None for process in self.fleet.of(consumer))

    def _knows_the_dead(self) -> bool:
        gone = (process for process in self.fleet.processes.values() if not process.lives)
        return all(self.fleet.is_dead(process.process) for process in gone)


def _fits(speed: float, room: Collection[float]) -> bool:
    return any(speed <= left for left in room)
