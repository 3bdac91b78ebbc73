"""Gaps without a reader while partitions changed hands, by what reports say and the brokers' clock."""

from collections.abc import Iterable, Mapping

from kgs_core.model import TopicPartition
from kgs_core.protocol import Heartbeat, Incarnation, Message, Phase, Received, Report

_NOTHING: frozenset[TopicPartition] = frozenset()


class Unread:
    """Follows the reports. A report is written when the old owner has let go, and before the new one's first record."""

    def __init__(self) -> None:
        self._sequences: dict[Incarnation, int] = {}
        self._owned: dict[Incarnation, frozenset[TopicPartition]] = {}
        self._heard_ms: dict[Incarnation, int] = {}
        self._owner: dict[TopicPartition, Incarnation] = {}
        self._free_ms: dict[TopicPartition, int] = {}
        self._gaps_s: dict[TopicPartition, float] = {}
        self._taken_ms: int | None = None

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
                self._take(incarnation, owned, received.timestamp_ms)
            self._heard_ms[incarnation] = received.timestamp_ms

    def forget_gaps(self) -> None:
        """From here on everything counts anew; who owns what is remembered."""
        self._gaps_s = {}
        self._taken_ms = None

    @property
    def taken_ms(self) -> int | None:
        """When the last partition found its new owner, ms since 1970; None where none has."""
        return self._taken_ms

    @property
    def gaps_s(self) -> Mapping[TopicPartition, float]:
        """Partition that has a new owner -> seconds for which it had none.

        Where the old one never said that it had let go, as the dead do not, it counts from when it was last heard.
        """
        return self._gaps_s

    @property
    def unowned(self) -> frozenset[TopicPartition]:
        """Partitions that were let go and that nobody has taken."""
        return frozenset(self._free_ms)

    def _take(self, incarnation: Incarnation, owned: frozenset[TopicPartition], time_ms: int) -> None:
        before = self._owned.get(incarnation, _NOTHING)
        for partition in before - owned:
            if self._owner.get(partition) == incarnation:
                del self._owner[partition]
                self._free_ms[partition] = time_ms
        for partition in owned - before:
            last = self._owner.get(partition)
            since_ms = self._free_ms.pop(partition, None if last is None else self._heard_ms[last])
            if since_ms is not None:
                self._gaps_s[partition] = self._gaps_s.get(partition, 0.0) + max(0, time_ms - since_ms) / 1000
            self._owner[partition] = incarnation
            self._taken_ms = time_ms
        self._owned[incarnation] = owned
