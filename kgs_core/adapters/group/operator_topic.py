"""Reader and writer of what people want of a group, for the `kgs` command."""

from collections.abc import Sequence

from kgs_core.adapters.group.durable_writer import DurableWriter
from kgs_core.adapters.group.reader import GroupReader, Refusals
from kgs_core.adapters.group.topics import GroupTopic, GroupTopics
from kgs_core.protocol import Approval, DesiredState, DesiredVersion, Received

_TIMEOUT_S = 15.0  # each time by a new client: a slow broker takes 5 s to connect to, and 5 s for the answer
OperatorMessage = DesiredState | DesiredVersion | Approval


class OperatorTopicWriter:
    """Writes and reads `operator.metadata`; the topics must have been opened with that one among them."""

    def __init__(self, topics: GroupTopics) -> None:
        self._topics = topics
        self._writer = DurableWriter(topics, GroupTopic.OPERATOR)
        (self._tp,) = topics.partitions(GroupTopic.OPERATOR)

    def write(self, desired: OperatorMessage, timeout_s: float = _TIMEOUT_S) -> Received[OperatorMessage]:
        """Append one message; durable once it returns.

        Raises:
            UnsafeError: the topic was made again since it was opened.
            TransientError: not known to be there within `timeout_s`.
            PermanentError: refused.
        """
        self._topics.check()
        return self._writer.append(desired, timeout_s)

    def read(self, timeout_s: float = _TIMEOUT_S) -> Sequence[Received[OperatorMessage]]:
        """What has been written there, oldest first; of each kind the newest one counts.

        Raises:
            UnsafeError: the topic was made again since it was opened.
            TransientError: Kafka does not answer.
            PermanentError: refused.
        """
        admin = self._topics.admin
        self._topics.check()
        reader = GroupReader(self._topics, admin.offsets([self._tp], "earliest"), Refusals())
        try:
            read = reader.take_up_to(admin.offsets([self._tp], "latest"), timeout_s)
        finally:
            reader.close()
        return [
            Received(each.message, each.offset, each.timestamp_ms)
            for _, each in read
            if isinstance(each.message, OperatorMessage)
        ]

    def close(self) -> None:
        """End the client."""
        self._writer.close()
