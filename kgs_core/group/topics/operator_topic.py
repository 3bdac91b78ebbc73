"""Reader and writer of what people want of a group, for the `kgs` command."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from kgs_core.config import Settings
from kgs_core.errors import UnsafeError
from kgs_core.group.protocol import DesiredState, DesiredVersion, Received, RunState
from kgs_core.group.topics.durable_writer import DurableWriter
from kgs_core.group.topics.reader import GroupReader, Refusals
from kgs_core.group.topics.topics import GroupTopic, GroupTopics
from kgs_core.kafka.admin import admin_of

_TIMEOUT_S = 15.0  # each time by a new client: a slow broker takes 5 s to connect to, and 5 s for the answer
OperatorMessage = DesiredState | DesiredVersion


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

    def ask_for_plan(self, request: DesiredState) -> None:
        """Append a request to carry out a plan; it also says that the group is to run, as people must want already.

        A pause that comes between the look at that and the record would be undone by it: so it is written once more.

        Raises:
            UnsafeError: people want the group paused or stopped; or see `write`.
        """
        before = self._states()
        if before and before[-1].message.state is not RunState.RUNNING:
            raise _not_running(before[-1].message)
        since, own = before[-1].offset if before else -1, self.write(request)
        between = [each.message for each in self._states() if since < each.offset < own.offset]
        if between and between[-1].state is not RunState.RUNNING:
            self.write(between[-1])
            raise _not_running(between[-1])

    def _states(self) -> list[Received[DesiredState]]:
        return [
            Received(each.message, each.offset, each.timestamp_ms)
            for each in self.read()
            if isinstance(each.message, DesiredState)
        ]

    def read(self, timeout_s: float = _TIMEOUT_S) -> Sequence[Received[OperatorMessage]]:
        """What has been written there, oldest first; of each kind the newest one counts.

        Raises:
            UnsafeError: the topic was made again since it was opened.
            TransientError: Kafka does not answer.
            PermanentError: refused.
        """
        admin = self._topics.admin
        self._topics.check()
        with closing(GroupReader(self._topics, admin.offsets([self._tp], "earliest"), Refusals())) as reader:
            read = reader.take_up_to(admin.offsets([self._tp], "latest"), timeout_s)
        return [
            Received(each.message, each.offset, each.timestamp_ms)
            for _, each in read
            if isinstance(each.message, OperatorMessage)
        ]

    def close(self) -> None:
        """End the client."""
        self._writer.close()


@contextmanager
def operator_writer(settings: Settings) -> Iterator[OperatorTopicWriter]:
    """A writer for one request, with clients of its own.

    Raises:
        PortError: Kafka does not answer, or refuses; there is no such group.
    """
    with closing(OperatorTopicWriter(GroupTopics(settings, admin_of(settings), [GroupTopic.OPERATOR]))) as writer:
        yield writer


def _not_running(desired: DesiredState) -> UnsafeError:
    return UnsafeError(f"the group is to be {desired.state}: nothing is moved before `kgs resume`")
