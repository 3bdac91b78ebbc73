"""Gaps without a reader while partitions changed hands, by what reports say and the brokers' clock."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kgs_core.group.protocol import Heartbeat, Incarnation, Member, Message, Phase, Received, Report
from kgs_core.model import ConsumerId, TopicPartition

_NOTHING: frozenset[TopicPartition] = frozenset()


class Handover(NamedTuple):
    """A partition that found a new reader.

    Attributes:
        before, after: consumers; the same one where only its process is another.
        taken_ms: when the new one reported it, ms since 1970 by the brokers' clock.
    """

    partition: TopicPartition
    before: ConsumerId
    after: ConsumerId
    taken_ms: int
    gap_s: float


class Unread:
    """Follows the reports. A report is written when the old owner has let go, and before the new one's first record.

    Attributes:
        handovers: partitions that have found a new owner, in the order of the reports. Where the old one never said
            that it had let go, as the dead do not, the gap counts from when it was last heard.
        taken_ms: when the last partition found another consumer, ms since 1970; None where none has. What one gets back
            that was started anew is no change of the group's.
    """

    def __init__(self) -> None:
        self._sequences: dict[Incarnation, int] = {}
        self._owned: dict[Incarnation, frozenset[TopicPartition]] = {}
        self._heard_ms: dict[Incarnation, int] = {}
        self._owner: dict[TopicPartition, Member] = {}
        self._free: dict[TopicPartition, tuple[ConsumerId, int]] = {}
        self.handovers: list[Handover] = []
        self.taken_ms: int | None = None

    def take(self, messages: Iterable[Received[Message]]) -> None:
        """More of what the topics say, in their order; a message that comes again changes nothing."""
        for received in messages:
            message = received.message
            if not isinstance(message, Report | Heartbeat):
                continue
            incarnation = message.member.incarnation
            if message.sequence <= self._sequences.get(incarnation, -1):
                continue
            self._sequences[incarnation] = message.sequence
            if isinstance(message, Report):
                owned = _NOTHING if message.phase is Phase.ENDED else message.owned
                self._take(message.member, owned, received.timestamp_ms)
            self._heard_ms[incarnation] = received.timestamp_ms

    def forget_gaps(self) -> None:
        """From here on everything counts anew; who owns what is remembered."""
        self.handovers = []
        self.taken_ms = None

    @property
    def gaps_s(self) -> Mapping[TopicPartition, float]:
        """Partition that has a new owner -> seconds for which it had none, all of its handovers together."""
        found: dict[TopicPartition, float] = {}
        for each in self.handovers:
            found[each.partition] = found.get(each.partition, 0.0) + each.gap_s
        return found

    @property
    def unowned(self) -> frozenset[TopicPartition]:
        """Partitions that were let go and that nobody has taken."""
        return frozenset(self._free)

    def _take(self, member: Member, owned: frozenset[TopicPartition], time_ms: int) -> None:
        before = self._owned.get(member.incarnation, _NOTHING)
        for partition in before - owned:
            if self._owner.get(partition) == member:
                del self._owner[partition]
                self._free[partition] = member.consumer, time_ms
        for partition in sorted(owned - before):
            last = self._owner.get(partition)
            free = self._free.pop(partition, (last.consumer, self._heard_ms[last.incarnation]) if last else None)
            if free is not None:
                gap_s = max(0, time_ms - free[1]) / 1000
                self.handovers.append(Handover(partition, free[0], member.consumer, time_ms, gap_s))
            self._owner[partition] = member
            if free is None or free[0] != member.consumer:
                self.taken_ms = time_ms
        self._owned[member.incarnation] = owned
