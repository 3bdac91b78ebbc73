"""Reading partitions of the group's topics: committed records in order, decoded, whatever else is in them."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, assert_never

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as KafkaPosition

from kgs_core.errors import PermanentError, ProtocolError, TransientError
from kgs_core.group.protocol import (
    DesiredState,
    DesiredVersion,
    Heartbeat,
    Member,
    MemberAssignment,
    Message,
    Received,
    Report,
    Starting,
    Target,
    Tombstone,
)
from kgs_core.group.protocol.codec import decode, is_former
from kgs_core.group.topics.topics import GroupTopic, GroupTopics
from kgs_core.kafka.client_config import reading_client
from kgs_core.kafka.clients import RotatingClient
from kgs_core.kafka.errors import port_error
from kgs_core.kafka.records import PARTITION_END, RANGE_ERRORS, Record, arrived
from kgs_core.model import ConsumerId, TopicPartition

_POLL_EVENTS = 1000
_POLL_S = 0.2  # a signal to this process is acted upon between two calls only
_MAX_REASONS = 100
_log = logging.getLogger(__name__)


class ReadMessage(NamedTuple):
    """A message, and which topic it was in."""

    kind: GroupTopic
    received: Received[Message]


class NotAtEndError(TransientError):
    """Reading has not come to the end of some partitions in time.

    Attributes:
        read: what had come by then; who reads on gets what comes after it.
    """

    def __init__(self, message: str, behind: Sequence[TopicPartition], read: list[ReadMessage]) -> None:
        super().__init__(message)
        self.behind, self.read = behind, read


class Refusals:
    """Counts records that are no message of ours; says each reason once."""

    def __init__(self) -> None:
        self.count = 0
        self._logged: set[str] = set()

    def note(self, tp: TopicPartition, offset: int, error: ProtocolError) -> None:
        """Takes in one record that was left out."""
        self.count += 1
        reason = str(error)
        if reason not in self._logged and len(self._logged) < _MAX_REASONS:
            self._logged.add(reason)
            _log.warning("left out %s offset %d: %s", tp, offset, reason)


class GroupReader:
    """One client on some partitions of the group's topics, each from an offset of ours.

    A transaction's marker and aborted records take offsets and are no records: how far a partition has been read is
    told by its end-of-partition event, never by its last record.

    Attributes:
        positions: the next offset of each partition, past all that was delivered.
        out_of_range: partitions whose next offset the log does not have; not read until it is rewound.
        problem: the newest error event, which may pass by itself; empty without one.
        is_served: Kafka has given out something since the partitions were asked for last, if only an end.
        misplaced: Assignments that no tombstone has removed, in a partition that is not their consumer's.
    """

    def __init__(
        self,
        topics: GroupTopics,
        starts: Mapping[TopicPartition, int],
        refusals: Refusals,
        only: ConsumerId | None = None,
    ) -> None:
        """Begins to read.

        Args:
            refusals: counts what is no message of ours.
            only: passes over the others whose Assignments are in the same partition.

        Raises:
            PortError: the client's settings are wrong.
        """
        settings = topics.settings
        self._topics = topics
        self._where = settings.kafka.bootstrap_servers
        self._kinds = {tp: kind for kind in GroupTopic for tp in starts if tp.topic == kind.of(settings.group)}
        self._refusals = refusals
        self._only = only
        self._read: list[ReadMessage] = []
        self._refused: PermanentError | None = None
        self.positions = dict(starts)
        self.misplaced: dict[Member, TopicPartition] = {}
        self.out_of_range: set[TopicPartition] = set()
        self.problem = ""
        self.is_served = False
        config: dict[str, Any] = {**reading_client(settings), "error_cb": self._note_connection}
        self._made = RotatingClient(config, Consumer)
        self._consumer = self._made.get()
        self.ask()

    def take(self, timeout_s: float) -> list[ReadMessage]:
        """What has come; waits at most `timeout_s` (and at most 0.2 s) for the first event, message or not.

        Raises:
            PermanentError: Kafka refuses; what came with that is given out by the next call.
        """
        if (new := self._made.get()) is not self._consumer:
            self._consumer = new
            self.ask()
        for event in arrived(self._consumer, _POLL_EVENTS, max(0.0, min(timeout_s, _POLL_S))):
            self._sort_in(event)
        if self._refused is not None:
            refused, self._refused = self._refused, None
            raise refused
        read, self._read = self._read, []
        return read

    def take_up_to(self, ends: Mapping[TopicPartition, int], timeout_s: float) -> list[ReadMessage]:
        """What has come when every partition is read as far as its end; a NotAtEndError where that takes too long."""
        read: list[ReadMessage] = []
        deadline = time.monotonic() + timeout_s
        while behind := [tp for tp, end in ends.items() if self.positions[tp] < end]:
            if time.monotonic() > deadline:
                raise NotAtEndError(
                    f"Kafka {self._where}: not at the end of {', '.join(map(str, behind[:3]))} after {timeout_s:g} s: "
                    f"{self.problem or 'no answer, or a transaction that is still open'}",
                    behind,
                    read,
                )
            read += self.take(deadline - time.monotonic())
            self.rewind()
        return read

    def rewind(self) -> None:
        """Where the log no longer has the next offset, go on from its beginning.

        Raises:
            UnsafeError: the topic was made again since it was opened.
            PortError: refused, or no answer.
        """
        if not self.out_of_range:
            return
        self._topics.check()
        starts = self._topics.admin.offsets(self.out_of_range, "earliest")
        for tp, first in starts.items():
            _log.warning("%s: offset %d is gone: read again from %d", tp, self.positions[tp], first)
        self.positions |= starts
        self.out_of_range.clear()
        self.ask()

    def ask(self) -> None:
        """Ask for the partitions, from their positions: what Kafka refuses, the client says only once."""
        self.is_served = False
        self._consumer.assign([KafkaPosition(tp.topic, tp.partition, o) for tp, o in sorted(self.positions.items())])

    def close(self) -> None:
        """End the client."""
        if (client := self._made.take()) is not None:
            client.close()

    def _sort_in(self, event: Record) -> None:
        tp, error = TopicPartition(event.topic(), event.partition()), event.error()
        if tp not in self.positions:
            self._note_error(tp, error)
        elif error is None:
            self.is_served = True
            if event.offset() >= self.positions[tp]:  # else sent twice, before and after an `assign`
                self.positions[tp] = event.offset() + 1
                self._decode(tp, event)
        elif error.code() == PARTITION_END:
            self.is_served = True
            self.positions[tp] = max(self.positions[tp], event.offset())
        elif error.code() in RANGE_ERRORS:
            self.out_of_range.add(tp)
        else:
            self._note_error(tp, error)

    def _decode(self, tp: TopicPartition, record: Record) -> None:
        key = record.key()
        if is_former(key) or (self._only is not None and self._is_of_another(key, tp.partition)):
            return
        try:
            message = self._message(tp, record)
        except ProtocolError as e:
            self._refusals.note(tp, record.offset(), e)
        else:
            self._read.append(ReadMessage(self._kinds[tp], Received(message, record.offset(), record.timestamp()[1])))

    def _message(self, tp: TopicPartition, record: Record) -> Message:
        message = decode(record.key(), record.value())
        if not belongs(message, self._kinds[tp], tp.partition, self._topics.queue):
            self._note_misplaced(message, tp)
            raise ProtocolError(f"{type(message).__name__} does not belong into partition {tp}")
        return message

    def _is_of_another(self, key: bytes | None, partition: int) -> bool:
        """Whether the record speaks of another consumer that this partition is for, too."""
        number = (key or b"").partition(b"/")[0]
        if not number.isdigit():
            return False
        consumer = ConsumerId(int(number))
        return consumer != self._only and self._topics.queue(consumer) == partition

    def _note_misplaced(self, message: Message, tp: TopicPartition) -> None:
        if self._kinds[tp] is not GroupTopic.ASSIGNMENTS or tp.partition == 0:
            return
        if isinstance(message, MemberAssignment):
            self.misplaced[message.member] = tp
        elif isinstance(message, Tombstone):
            self.misplaced.pop(message.member, None)

    def _note_error(self, tp: TopicPartition, error: KafkaError | None) -> None:
        # The client looks for its group's coordinator unasked; no right on a group is needed to read
        if error is None or error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return
        failure = port_error(self._where, f"read {tp}" if tp in self.positions else "read", error)
        if isinstance(failure, PermanentError):
            self._refused = failure
        self.problem = str(failure)

    def _note_connection(self, error: KafkaError) -> None:
        self.problem = str(port_error(self._where, "read", error))


def belongs(message: Message, kind: GroupTopic, partition: int, queue: Callable[[ConsumerId], int]) -> bool:
    """Whether a message may come from there: what a role may not write, it must not be able to say elsewhere."""
    match message:
        case Target():
            return kind is GroupTopic.ASSIGNMENTS and partition == 0
        case MemberAssignment() | Tombstone():
            return kind is GroupTopic.ASSIGNMENTS and partition == queue(message.member.consumer)
        case Report() | Heartbeat() | Starting():
            return kind is GroupTopic.REPORTS
        case DesiredState() | DesiredVersion():
            return kind is GroupTopic.OPERATOR
        case _:
            assert_never(message)
