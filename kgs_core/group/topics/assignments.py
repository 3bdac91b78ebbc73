"""A consumer's queue: the Assignments of its number since it was opened."""

import time
from collections.abc import Sequence

from kgs_core.errors import PermanentError, UnsafeError
from kgs_core.group.protocol import MemberAssignment, Received
from kgs_core.group.topics.reader import GroupReader, ReadMessage, Refusals
from kgs_core.group.topics.topics import GroupTopic, GroupTopics
from kgs_core.model import ConsumerId

ASK_AGAIN_S = 5.0


class KafkaAssignmentReader:
    """A consumer's queue: the Assignments of its number. For one thread.

    Opened at the end of the queue: what was assigned before is not for this process. When the constructor returns, the
    place is fixed, so that whatever is assigned after the first report is received.
    """

    def __init__(self, topics: GroupTopics, consumer: ConsumerId) -> None:
        self._topics = topics
        self._tp = topics.partitions(GroupTopic.ASSIGNMENTS)[topics.queue(consumer)]
        self._refusals = Refusals()
        self._held: list[Received[MemberAssignment]] = []
        self._refusal: PermanentError | None = None
        self._asked_at = 0.0
        # Not where committed reads end: a transaction's last mark comes a little after its commit has returned, so that
        # an assignment to an earlier incarnation would still be given out
        start = topics.admin.offsets([self._tp], "latest")
        topics.check()  # else this is the end of another topic
        self._reader = GroupReader(topics, start, self._refusals, only=consumer)

    def newest(self, timeout_s: float) -> Sequence[Received[MemberAssignment]]:
        """Assignments that have come since the last call (on the first call: since the queue was opened), oldest first.

        Raises:
            TransientError: Kafka does not answer.
            UnsafeError: a topic was made again, or assignments were lost.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            for _, received in self._taken(deadline - time.monotonic()):
                if isinstance(received.message, MemberAssignment):  # tombstones are for who reads from the beginning
                    self._held.append(Received(received.message, received.offset, received.timestamp_ms))
            self._check()
            if self._held or time.monotonic() >= deadline:
                held, self._held = self._held, []
                return held

    def close(self) -> None:
        """End the client."""
        self._reader.close()

    def _taken(self, timeout_s: float) -> list[ReadMessage]:
        """What has come. A refusal lasts until Kafka gives out something again: the client says it only once."""
        now = time.monotonic()
        if self._refusal is not None and now - self._asked_at >= ASK_AGAIN_S:
            self._asked_at = now
            self._reader.ask()
        try:
            read = self._reader.take(timeout_s)
        except PermanentError as e:
            if self._refusal is None:
                self._asked_at = now
            self._refusal, self._reader.is_served = e, False
            raise
        if self._refusal is not None:
            if not self._reader.is_served:
                raise self._refusal
            self._refusal = None
        return read

    def _check(self) -> None:
        """Nothing is taken from a topic that was made again."""
        if not (self._held or self._reader.problem or self._reader.out_of_range):
            self._topics.check_now_and_then()
            return
        self._topics.check()
        self._reader.problem = ""
        if self._reader.out_of_range:
            raise UnsafeError(
                f"{self._tp}: offset {self._reader.positions[self._tp]} is not in the log: assignments were deleted "
                "before they were read: start this consumer again, it then gets new ones"
            )
