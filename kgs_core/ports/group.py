"""Ports of the group: its topics, and the fleet that consumers run in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kgs_core.group.protocol import MemberAssignment, Message, Process, Received, Target, Tombstone
from kgs_core.model import ConsumerId


class GroupTopicReader(Protocol):
    """Everything that the group's topics say, in the order of each partition."""

    def read_to_end(self) -> Sequence[Received[Message]]:
        """From the beginning of what counts to the ends that the partitions have now.

        Raises:
            TransientError: Kafka does not answer.
        """

    def poll(self, timeout_s: float) -> Sequence[Received[Message]]:
        """What has come since; waits at most `timeout_s` for the first.

        Raises:
            TransientError: Kafka does not answer.
        """


class ControllerWriter(Protocol):
    """The controller's writer. One holds it at a time: whoever takes it, takes it from everybody before."""

    def fence(self) -> None:
        """Take the right to write: from now on every write of an older controller fails.

        Raises:
            TransientError: Kafka does not answer.
        """

    def write(
        self, target: Target | None, assignments: Sequence[MemberAssignment], tombstones: Sequence[Tombstone]
    ) -> Sequence[Received[Message]]:
        """Write all of it or nothing, in one transaction; returns each message with its offset, in this order.

        Raises:
            FencedError: a newer controller has the right to write. Final.
            TransientError: nothing is known of the result: fence, read to the end, then decide again.
        """


@dataclass(frozen=True, slots=True)
class Run:
    """One process that a fleet has started, or knows of.

    Attributes:
        handle: the fleet's name for it.
        started_s: ago.
        is_over: it has ended, and its process is gone.
        exit_code: where the fleet knows it.
        why: what keeps it from running, or has ended it, where the fleet knows that; one line.
    """

    consumer: ConsumerId
    handle: str
    started_s: float
    is_over: bool
    exit_code: int | None = None
    why: str = ""


class Fleet(Protocol):
    """Starts and ends consumers, and knows for certain who is dead."""

    def runs(self) -> Sequence[Run]:
        """Every run that has not ended, and those that ended of late."""

    def start(self, consumer: ConsumerId, consumer_class: str = "") -> Run:
        """Start one process for this consumer, as one of this class; empty: there are none.

        Raises:
            PortError: it could not be started.
        """

    def stop(self, handle: str) -> None:
        """Ask a run to drain and end; nothing where it has ended already."""

    def is_dead(self, process: Process) -> bool | None:
        """Whether this process is gone for certain; None when that cannot be told from here."""
