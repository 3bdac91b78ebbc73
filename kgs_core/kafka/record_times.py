"""Timestamps of the records at given offsets: how far behind a reader is, in seconds."""

import time
from collections.abc import Mapping

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition

from kgs_core.config import Settings
from kgs_core.errors import PortError, TransientError, one_line
from kgs_core.kafka.client_config import reading_client
from kgs_core.kafka.clients import RotatingClient
from kgs_core.kafka.records import PARTITION_END
from kgs_core.model import TopicPartition

MOST_AT_ONCE = 500
"""Partitions asked in one look: each costs a fetch of a batch. The others come with the next looks."""
_QUEUE_KBYTES = 1024


class RecordTimes:
    """Asks Kafka for one record at each position, and remembers its time. One thread.

    Attributes:
        empty_to: of the last call, partitions without a record at or behind their positions -> end of their logs.
    """

    def __init__(self, settings: Settings, *, committed: bool = True) -> None:
        """`committed`: records of open and aborted transactions are passed over."""
        own = {"queued.min.messages": 1, "queued.max.messages.kbytes": _QUEUE_KBYTES, "max.partition.fetch.bytes": 1024}
        self._config = {
            **reading_client(settings),
            **own,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
        self._made: RotatingClient[Consumer] | None = None
        self._known: dict[TopicPartition, tuple[int, int]] = {}
        self._asked = 0
        self.empty_to: dict[TopicPartition, int] = {}

    def at(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> dict[TopicPartition, int]:
        """Partition -> timestamp of the first record at or behind its position, ms since 1970.

        Of those that did not answer in time, or are of more than `MOST_AT_ONCE` and their turn has not come, it is the
        last answer, at an earlier position; without one, or if the record has no time, they are left out.

        Raises:
            TransientError: Kafka does not answer at all.
        """
        self._known = {tp: known for tp, known in self._known.items() if known[0] <= positions.get(tp, -1)}
        new = sorted(tp for tp, at in positions.items() if tp not in self._known or self._known[tp][0] != at)
        first = self._asked % len(new) if len(new) > MOST_AT_ONCE else 0
        turn = (new[first:] + new[:first])[:MOST_AT_ONCE]
        self._asked += len(turn)
        self.empty_to = {}
        if turn:
            self._ask({tp: positions[tp] for tp in turn}, timeout_s)
        return {tp: stamp for tp, (_, stamp) in self._known.items()}

    def close(self) -> None:
        """End the connection."""
        if self._made is not None and (client := self._made.take()) is not None:
            client.close()

    def _ask(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        open_ = dict(positions)
        try:
            self._made = self._made or RotatingClient(self._config, Consumer)
            client = self._made.get()
            client.assign([ClientTopicPartition(tp.topic, tp.partition, offset) for tp, offset in open_.items()])
            while open_ and (left_s := deadline - time.monotonic()) > 0:
                message = client.poll(left_s)
                error = None if message is None else message.error()
                is_end = error is not None and error.code() == PARTITION_END
                if message is None or (error is not None and not is_end):
                    continue
                tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
                if tp not in open_:
                    continue
                kind, stamp = message.timestamp()
                position = open_.pop(tp)
                self._known.pop(tp, None)
                if is_end:
                    self.empty_to[tp] = int(message.offset() or 0)
                elif kind != TIMESTAMP_NOT_AVAILABLE:
                    self._known[tp] = (position, stamp)
                client.incremental_unassign([ClientTopicPartition(tp.topic, tp.partition)])
            client.unassign()
        except (KafkaException, PortError) as e:
            self.close()
            raise TransientError(f"records at the tables' positions: {one_line(e)}") from e
