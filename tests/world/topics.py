"""The topics of a group as one broker has them: logs that are only appended to, transactions, and one writer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kgs_core.errors import FencedError
from kgs_core.group.protocol import (
    DesiredState,
    DesiredVersion,
    Heartbeat,
    Incarnation,
    MemberAssignment,
    Message,
    Received,
    Report,
    Starting,
    Target,
    Tombstone,
)
from kgs_core.model import ConsumerId, TopicId, TopicPartition
from kgs_core.planning.load import Load


class Log(NamedTuple):
    topic: str
    partition: int = 0


TARGETS = Log("consumer.metadata", 0)
REPORTS = Log("controller.metadata")
OPERATOR = Log("operator.metadata")


def log_of(message: Message) -> Log:
    """Where a message of this kind is written."""
    match message:
        case Target():
            return TARGETS
        case MemberAssignment() | Tombstone():
            return queue_of(message.member.consumer)
        case Report() | Heartbeat() | Starting():
            return REPORTS
        case DesiredState() | DesiredVersion():
            return OPERATOR


def queue_of(consumer: ConsumerId) -> Log:
    return Log("consumer.metadata", consumer)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    @property
    def ms(self) -> int:
        """What the broker stamps records with."""
        return round(self.now * 1000)


@dataclass(slots=True)
class Topics:
    """Everything that was ever written.

    Attributes:
        logs: of each partition, in order.
        ends: next offset of each partition. The marker of a transaction takes an offset, too.
        history: all partitions together, in the order in which they were appended.
        journal: the same, and what controllers have done between, each with its time.
        writer: which controller may write, by the number that its fence got.
        torn: whose Assignment a transaction has not written that was committed elsewhere; none has come since.
        hanging: messages of a transaction that is decided and ends when the next controller fences.
        fences: an older writer is refused. Off only to see what would happen.
        written: end offsets of what the group reads, where a test counts records; read: up to where they are read.
    """

    clock: Clock
    logs: dict[Log, list[Received[Message]]] = field(default_factory=dict)
    ends: dict[Log, int] = field(default_factory=dict)
    history: list[Received[Message]] = field(default_factory=list)
    journal: list[tuple[float, object]] = field(default_factory=list)
    writer: int = 0
    torn: set[Incarnation] = field(default_factory=set)
    hanging: tuple[Message, ...] = ()
    fences: bool = True
    written: dict[TopicPartition, int] = field(default_factory=dict)
    read: dict[TopicPartition, int] = field(default_factory=dict)

    def write(self, partition: TopicPartition, records: int = 1) -> None:
        """Somebody produces what the group reads."""
        self.written[partition] = self.written.get(partition, 0) + records

    def measured(self, load: Load) -> Load:
        """`load` with the ends of what is known; a record has come wherever anything is written."""
        for partition, speed in load.speeds.items():
            self.write(partition, 1 if speed else 0)
        ends = {p: end for p, end in self.written.items() if p in load.speeds and p not in load.unknown}
        return replace(load, ends=ends, topic_ids={p.topic: TopicId("id") for p in ends})

    def log(self, log: Log) -> Sequence[Received[Message]]:
        return self.logs.get(log, [])

    def everything(self) -> Sequence[Received[Message]]:
        """All that counts, as it stands: partition by partition."""
        return [received for log in sorted(self.logs) for received in self.logs[log]]

    def append(self, message: Message) -> Received[Message]:
        """One record, for good."""
        log = log_of(message)
        received = Received(message, self.ends.get(log, 0), self.clock.ms)
        self.logs.setdefault(log, []).append(received)
        self.history.append(received)
        self.journal.append((self.clock.now, received))
        self.ends[log] = received.offset + 1
        if isinstance(message, MemberAssignment):
            self.torn.discard(message.member.incarnation)
        return received

    def fence_writers(self) -> int:
        """Fence: a hanging transaction ends, every older writer is refused from now on."""
        self.commit(self.hanging)
        self.hanging = ()
        self.writer += 1
        return self.writer

    def check_writer(self, writer: int) -> None:
        """Refuse an older one.

        Raises:
            FencedError: there is a newer one.
        """
        if self.fences and writer != self.writer:
            raise FencedError("simulated Kafka: a newer controller has the right to write: this one is at its end")

    def commit(self, messages: Sequence[Message]) -> Sequence[Received[Message]]:
        """All of them at once."""
        written = [self.append(message) for message in messages]
        for log in {log_of(message) for message in messages}:
            self.ends[log] += 1
        return written
