"""The ports to the topics: what controller and consumers read and write, late, doubled or not at all."""

from collections.abc import Sequence

from kgs_core.errors import TransientError
from kgs_core.group.protocol import Heartbeat, MemberAssignment, Message, Received, Report, Target, Tombstone
from kgs_core.group.view.events import Write
from kgs_core.model import ConsumerId
from tests.world.chance import Chance
from tests.world.topics import Log, Topics, log_of, queue_of

_SEEN_AGAIN = 3
"""A reader that sees something once more goes back by so many records at most."""


class Reader:
    """One reader's place in each partition. The order within a partition is always kept."""

    def __init__(self, topics: Topics, chance: Chance) -> None:
        self._topics = topics
        self._chance = chance
        self._next: dict[Log, int] = {}

    def seek_to_end(self, log: Log) -> None:
        """Only what comes from now on."""
        self._next[log] = len(self._topics.log(log))

    def take(self, log: Log) -> Sequence[Received[Message]]:
        """What has come in one partition: all of it, or only the first of it, or more than that."""
        there = self._topics.log(log)
        at, end = self._next.get(log, 0), len(there)
        if self._chance.strikes(self._chance.trouble.late):
            end = at + self._chance.number(end - at + 1)
        if self._chance.strikes(self._chance.trouble.doubled):
            at = max(0, at - self._chance.number(_SEEN_AGAIN + 1))
        self._next[log] = end
        return there[at:end]


class SimGroupTopicReader:
    """`ports.GroupTopicReader`."""

    def __init__(self, topics: Topics, chance: Chance) -> None:
        self._topics = topics
        self._chance = chance
        self._reader = Reader(topics, chance)

    def read_to_end(self) -> Sequence[Received[Message]]:
        if self._chance.strikes(self._chance.trouble.unanswered):
            raise TransientError("simulated Kafka: does not answer")
        for log in self._topics.logs:
            self._reader.seek_to_end(log)
        return self._topics.everything()

    def poll(self, timeout_s: float) -> Sequence[Received[Message]]:
        return [received for log in sorted(self._topics.logs) for received in self._reader.take(log)]


class SimControllerWriter:
    """`ports.ControllerWriter`."""

    def __init__(self, topics: Topics, chance: Chance) -> None:
        self._topics = topics
        self._chance = chance
        self._writer = 0

    def fence(self) -> None:
        if self._chance.strikes(self._chance.trouble.unanswered):
            raise TransientError("simulated Kafka: does not answer")
        self._writer = self._topics.fence_writers()

    def write(
        self, target: Target | None, assignments: Sequence[MemberAssignment], tombstones: Sequence[Tombstone]
    ) -> Sequence[Received[Message]]:
        """All of it or nothing."""
        self._topics.check_writer(self._writer)
        messages: tuple[Message, ...] = Write(target, tuple(assignments), tuple(tombstones)).messages
        trouble = self._chance.trouble
        if self._chance.strikes(trouble.write_lost):
            raise TransientError("simulated Kafka: the transaction was aborted, which nobody knows")
        if self._chance.strikes(trouble.write_hangs):
            self._topics.hanging = messages
            raise TransientError("simulated Kafka: the transaction ends later, which nobody knows")
        if self._chance.strikes(trouble.write_torn):
            torn = {log for log in map(log_of, messages) if self._chance.strikes(0.5)}
            self._topics.commit([message for message in messages if log_of(message) not in torn])
            self._topics.torn |= {each.member.incarnation for each in assignments if log_of(each) in torn}
            raise TransientError(
                "simulated Kafka: the transaction was committed in some partitions, which nobody knows"
            )
        written = self._topics.commit(messages)
        if self._chance.strikes(trouble.write_unsure):
            raise TransientError("simulated Kafka: the transaction was committed, which nobody knows")
        return written


class SimReportWriter:
    """A writer of reports."""

    def __init__(self, topics: Topics, chance: Chance) -> None:
        self._topics = topics
        self._chance = chance

    def append(self, report: Report | Heartbeat, timeout_s: float) -> None:
        if self._chance.strikes(self._chance.trouble.report_lost):
            raise TransientError("simulated Kafka: the report was lost, which nobody knows")
        self._topics.append(report)
        if self._chance.strikes(self._chance.trouble.report_unsure):
            raise TransientError("simulated Kafka: the report was appended, which nobody knows")


class SimAssignmentReader:
    """A queue of Assignments, opened at the end of the queue."""

    def __init__(self, topics: Topics, chance: Chance, consumer: ConsumerId) -> None:
        self._log = queue_of(consumer)
        self._reader = Reader(topics, chance)
        self._reader.seek_to_end(self._log)

    def newest(self, timeout_s: float) -> Sequence[Received[MemberAssignment]]:
        return [
            Received(received.message, received.offset, received.timestamp_ms)
            for received in self._reader.take(self._log)
            if isinstance(received.message, MemberAssignment)
        ]
