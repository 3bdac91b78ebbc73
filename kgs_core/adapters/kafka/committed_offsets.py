"""Tells Kafka how far the lake is, for lag tools only: after the lake's commit, never read back as a position."""

import logging
import threading
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPosition

from kgs_core.adapters.kafka.clients import RotatingClient
from kgs_core.adapters.kafka.errors import port_error
from kgs_core.errors import PortError, TransientError
from kgs_core.model import TopicPartition

INTERVAL_S = 1.0
LOOK_S = 60.0  # a process that was stopped between its look and its commit may have set offsets back
REPEAT_S = 12 * 3600  # committed offsets expire by the time of their commit, also while we run
TIMEOUT_S = 10.0
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
        self._wanted: dict[TopicPartition, int] = {}
        self._sent: dict[TopicPartition, int] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._rounds = 0
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name="group-offsets", daemon=True)
        self._thread.start()

    def committed(self, tps: list[TopicPartition]) -> dict[TopicPartition, int]:
        """What the group has committed, for a first start that asks for it; partitions without are absent.

        Raises:
            PortError: Kafka did not answer for every partition, so that what it does not say is not "nothing".
        """
        wanted = [KafkaPosition(tp.topic, tp.partition) for tp in tps]
        what = f"offsets that group {self._group} has committed"
        try:
            found = self._made.get().committed(wanted, timeout=TIMEOUT_S)
        except KafkaException as e:
            raise port_error(self._where, what, e.args[0]) from e
        for p in found:
            if p.error is not None:
                raise port_error(self._where, f"{what} for {p.topic}:{p.partition}", p.error)
        return {TopicPartition(p.topic, p.partition): p.offset for p in found if p.offset >= 0}

    def report(self, positions: Mapping[TopicPartition, int]) -> None:
        """The lake has these positions; they reach Kafka within about a second, never lowered."""
        with self._lock:
            for tp, offset in positions.items():
                self._wanted[tp] = max(offset, self._wanted.get(tp, 0))

    def close(self) -> None:
        """Send what is waiting, then end."""
        self._stop.set()
        self._thread.join(timeout=2 * TIMEOUT_S)
        if (client := self._made.take()) is not None:
            client.close()

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_S):
            self._rounds += 1
            if self._rounds * INTERVAL_S >= REPEAT_S:
                self._rounds = 0
                self._sent = {}
            elif self._rounds % (LOOK_S // INTERVAL_S) == 0:
                self._try(self._look)
            self._try(self._send)
        self._try(self._send)

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
        """Forget what was sent of offsets that somebody has set back since, so that they are sent again."""
        there = self.committed(list(self._sent)) if self._sent else {}
        self._sent = {tp: offset for tp, offset in self._sent.items() if there.get(tp, -1) >= offset}

    def _send(self) -> None:
        with self._lock:
            new = {tp: offset for tp, offset in self._wanted.items() if offset > self._sent.get(tp, -1)}
        if not new:
            return
        # A consumer that was stopped for a while must not set back what its successor has reported.
        there = self.committed(list(new))
        ahead = {tp: offset for tp, offset in new.items() if offset >= there.get(tp, 0)}
        if ahead:
            positions = [KafkaPosition(tp.topic, tp.partition, offset) for tp, offset in ahead.items()]
            self._made.get().commit(offsets=positions, asynchronous=False)
        self._sent |= new
