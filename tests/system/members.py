"""Members of a group without Spark: the real membership and the real topics, and batches that take no time."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

from kgs_core.config import Settings
from kgs_core.fleet.host_process import this_process
from kgs_core.group.membership.member import Identity, MembershipTiming
from kgs_core.group.membership.membership import Membership
from kgs_core.group.protocol import Incarnation, Member
from kgs_core.group.topics.assignments import KafkaAssignmentReader
from kgs_core.group.topics.durable_writer import DurableWriter
from kgs_core.group.topics.topics import GroupTopic, GroupTopics
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.system.shutdown import StopFlag

_POLL_S = 0.05


class MemberThread:
    """One incarnation of one consumer."""

    def __init__(self, settings: Settings, consumer: int) -> None:
        """Opens its queue."""
        topics = GroupTopics(settings, KafkaAdmin(admin_client(settings)))
        self._assignments = KafkaAssignmentReader(topics, ConsumerId(consumer))
        self._reports = DurableWriter(topics, GroupTopic.REPORTS)
        member = Member(ConsumerId(consumer), Incarnation(str(uuid4())))
        membership = settings.membership
        pace = MembershipTiming(membership.heartbeat_s, membership.suspect_after_s, settings.consumer.batch_timeout_s)
        self._membership = Membership.join(Identity(member, this_process({})), pace, time.monotonic())
        self._stop = StopFlag()
        self._has_reported = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"member-{consumer}", daemon=True)
        self._thread.start()

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """What it would read."""
        return self._membership.owned

    def wait_joined(self) -> None:
        """Until its first report stands in the log."""
        assert self._has_reported.wait(30), "it does not join"

    def close(self) -> None:
        """It falls silent."""
        self._stop.set()
        self._thread.join(20)
        self._assignments.close()
        self._reports.close()

    def _run(self) -> None:
        while not self._stop.is_set and not self._membership.is_over:
            now = time.monotonic()
            self._membership = self._membership.received(self._assignments.newest(_POLL_S), now)
            if not self._membership.is_acted_on:
                self._membership = self._membership.acted(self._membership.decision, now)
            self._membership, message = self._membership.next_message(now)
            if message is not None:
                self._reports.append(message, 10.0)
                self._has_reported.set()
                self._membership = self._membership.appended(message, now)


@contextmanager
def members(settings: Settings, *consumers: int) -> Iterator[Sequence[MemberThread]]:
    """So many members, which have joined, until the end of the block."""
    started = [MemberThread(settings, consumer) for consumer in consumers]
    try:
        for member in started:
            member.wait_joined()
        yield started
    finally:
        for member in started:
            member.close()
