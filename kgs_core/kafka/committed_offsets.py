"""The group's offsets in Kafka: how far the lake is, committed after the lake's own commit.

They are for lag tools and for telling a first start from a missing lake (`lake.rule.first_start`), and are never
read back as positions.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPosition

from kgs_core.errors import PortError, TransientError
from kgs_core.kafka.clients import RotatingClient
from kgs_core.kafka.errors import port_error
from kgs_core.lake.rule.first_start import BEGINS_ANEW, GroupOffset
from kgs_core.model import TopicId, TopicPartition

INTERVAL_S = 1.0
LOOK_S = 60.0  # a process that was stopped between its look and its commit may have set offsets back
REPEAT_S = 12 * 3600  # committed offsets expire by the time of their commit, also while we run
TIMEOUT_S = 10.0
MARK = "kgs:"
"""Metadata of an offset that kgs has committed: this, the topic's id, a colon, the table's path."""
_COORDINATOR_MOVES = frozenset({"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"})
_AGAIN_S = 0.2
_MEMBERSHIP_ERRORS = frozenset(
    {"FENCED_INSTANCE_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID"}
)
"""Offsets are committed without membership: these come while somebody else is a member of the group."""
_log = logging.getLogger(__name__)


class GroupOffsets:
    """Commits the group's offsets from a thread of its own, so that a slow coordinator holds up no batch."""

    def __init__(self, client: Mapping[str, str | int | bool], group: str) -> None:
        # Never subscribed: offsets are committed without membership.
        self._made = RotatingClient({**client, "group.id": group, "enable.partition.eof": False}, Consumer)
        self._where = str(client.get("bootstrap.servers", ""))
        self._group = group
        self._wanted: dict[TopicPartition, GroupOffset] = {}
        self._sent: dict[TopicPartition, GroupOffset] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._rounds = 0
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name="group-offsets", daemon=True)
        self._thread.start()

    def committed(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, GroupOffset]:
        """The group's committed offsets; partitions without one are absent. All must answer, or it is a PortError."""
        wanted = [KafkaPosition(tp.topic, tp.partition) for tp in tps]
        what = f"offsets that group {self._group} has committed"
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                left_s = max(deadline - time.monotonic(), _AGAIN_S)
                found = self._made.get().committed(wanted, timeout=left_s)
                break
            except KafkaException as e:
                # The first question of a group may reach its coordinator before that has loaded it. The client looks
                # for another one, but does not ask again by itself.
                if e.args[0].name() not in _COORDINATOR_MOVES or time.monotonic() > deadline:
                    raise port_error(self._where, what, e.args[0]) from e
                time.sleep(_AGAIN_S)
        for p in found:
            if p.error is not None:
                raise port_error(self._where, f"{what} for {p.topic}:{p.partition}", p.error)
        return {TopicPartition(p.topic, p.partition): _group_offset(p) for p in found if p.offset >= 0}

    def report(self, topic_id: TopicId, table: str, positions: Mapping[TopicPartition, int]) -> None:
        """Commit these positions of a table within about a second; a higher one of the same topic and table stays."""
        with self._lock:
            self._wanted |= {tp: GroupOffset(offset, topic_id, table) for tp, offset in positions.items()}

    def begin_anew(self, positions: Mapping[TopicPartition, int]) -> None:
        """Have the group forget that it has read these partitions; those without an offset get this one.

        Raises:
            PortError: Kafka did not answer, or refuses. What was done is done again by the same call.
        """
        kept = {tp: at.offset for tp, at in self.committed(positions).items()}
        try:
            self._commit({tp: GroupOffset(kept.get(tp, offset), BEGINS_ANEW) for tp, offset in positions.items()})
        except KafkaException as e:
            raise port_error(self._where, f"commit offsets of group {self._group}", e.args[0]) from e

    def close(self) -> None:
        """Send what is waiting, then end; a commit without an answer is left to its thread."""
        self._stop.set()
        self._thread.join(timeout=2 * TIMEOUT_S)

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_S):
            self._rounds += 1
            if self._rounds % (LOOK_S // INTERVAL_S) == 0:
                self._try(self._look)
            if self._rounds * INTERVAL_S >= REPEAT_S:
                self._rounds = 0
                self._sent = {}
            self._try(self._send)
        self._try(self._send)
        # Here, since it would not return while this thread waits for the answer to a commit, which has no time-out
        if (client := self._made.take()) is not None:
            client.close()

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (KafkaException, PortError) as e:
            self.failures += 1
            _log.warning("group offsets not committed: %s", self._why(e))

    def _why(self, error: KafkaException | PortError) -> str:
        failure = error if isinstance(error, PortError) else port_error(self._where, "commit offsets", error.args[0])
        cause = error if isinstance(error, KafkaException) else error.__cause__
        if isinstance(cause, KafkaException) and cause.args[0].name() in _MEMBERSHIP_ERRORS:
            return f"{failure}: is group.id {self._group} used elsewhere?"
        return f"{failure}; tried again" if isinstance(failure, TransientError) else str(failure)

    def _look(self) -> None:
        """Forget what was sent of offsets that somebody has set back since, so that they are sent again.

        Those that are to begin anew, or that another table has now, wait for another position of ours.
        """
        there = self.committed(self._sent) if self._sent else {}
        with self._lock:
            for tp in [tp for tp, at in there.items() if at.topic_id is not None and not at.is_of(self._sent[tp])]:
                if self._wanted.get(tp) == self._sent.pop(tp):
                    del self._wanted[tp]
        self._sent = {tp: at for tp, at in self._sent.items() if tp in there and there[tp].covers(at)}

    def _send(self) -> None:
        with self._lock:
            new = {tp: at for tp, at in self._wanted.items() if at != self._sent.get(tp)}
        if not new:
            return
        # A consumer that was stopped for a while must not set back what its successor has reported.
        there = self.committed(new)
        self._commit(
            {tp: at for tp, at in new.items() if tp not in there or at.covers(there[tp]) or not there[tp].covers(at)}
        )
        self._sent |= new

    def _commit(self, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        if offsets:
            found = [KafkaPosition(*tp, at.offset, f"{MARK}{at.topic_id}:{at.table}") for tp, at in offsets.items()]
            self._made.get().commit(offsets=found, asynchronous=False)


def _group_offset(found: KafkaPosition) -> GroupOffset:
    mark: str = found.metadata or ""
    if not mark.startswith(MARK):
        return GroupOffset(found.offset)
    topic_id, _, table = mark.removeprefix(MARK).partition(":")
    return GroupOffset(found.offset, TopicId(topic_id), table)
