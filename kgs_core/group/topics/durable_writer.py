"""Writer of one message at a time that knows that it is there: the reports of consumers, what people want."""

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as ClientMessage

from kgs_core.errors import PortError, TransientError
from kgs_core.group.protocol import DesiredState, DesiredVersion, Heartbeat, Received, Report, Starting
from kgs_core.group.protocol.codec import encode
from kgs_core.group.topics.topics import MAX_RECORD_BYTES, GroupTopic, GroupTopics
from kgs_core.kafka.client_config import admin_client
from kgs_core.kafka.errors import ConnectionWatch
from kgs_core.kafka.producers import make_producer, serve, write_error
from kgs_core.model import TopicPartition
from kgs_core.system.secret_files import SecretFiles

REPEAT_S = 2.5
MOST_REPEATS = 4
_POLL_S = 0.2  # a signal to this process is acted upon between two calls only


_M = TypeVar("_M", bound=Report | Heartbeat | Starting | DesiredState | DesiredVersion)


class DurableWriter:
    """An idempotent producer with one message in flight. For one thread.

    A message without an answer is sent by a new client as well, and the client that has an answer first is kept
    (`silent_brokers`). After a failure the client is thrown away with what it has queued, so that nothing piles up
    behind a broker that is gone. So a message may arrive twice, in rare cases after what is sent next: readers go by a
    report's sequence number, and what people want is a whole state.
    """

    def __init__(self, topics: GroupTopics, which: GroupTopic) -> None:
        settings = topics.settings
        (self._tp,) = topics.partitions(which)
        self._where = settings.kafka.bootstrap_servers
        self._watch = ConnectionWatch()
        self._files = SecretFiles({})
        self._producer: Producer | None = None
        self._config: dict[str, Any] = {
            **admin_client(settings),
            "acks": "all",
            "enable.idempotence": True,
            "message.timeout.ms": 0,  # the caller's patience counts
            "message.max.bytes": MAX_RECORD_BYTES,
            "compression.type": "lz4",
            "linger.ms": 0,
            "error_cb": self._watch.note,
        }

    def append(self, message: _M, timeout_s: float) -> Received[_M]:
        """Returns once the record is on all replicas that are in sync.

        Raises:
            TransientError: not known to be there within `timeout_s`.
            ProtocolError: the message is not valid, or too large for a record.
        """
        record = encode(message)
        started = time.monotonic()
        if self._producer is None or self._files.have_changed():
            self._files = SecretFiles(self._config)
            self._producer = make_producer(self._where, self._config)
        producer, self._producer = self._producer, None  # kept only after a success
        attempts: list[_Delivery] = []
        begun = 1
        try:
            self._begin(attempts, producer, *record)
            while (left_s := started + timeout_s - time.monotonic()) > 0:
                for each in attempts:
                    if (written := each.written(self._where, left_s / len(attempts))) is not None:
                        self._producer = each.producer
                        return Received(message, int(written.offset() or 0), int(written.timestamp()[1]))
                if begun <= MOST_REPEATS and time.monotonic() > started + REPEAT_S * begun:
                    begun += 1
                    with suppress(PortError):  # no token now, say
                        self._begin(attempts, make_producer(self._where, self._config), *record)
        finally:
            for each in attempts:
                if each.producer is not self._producer:
                    each.give_up()
        cause = self._watch.cause_since(started)
        reason = f": {write_error(self._where, 'connect', cause)}" if cause is not None else ""
        raise TransientError(f"Kafka {self._where}: write to {self._tp}: no answer in {timeout_s:g} s{reason}")

    def _begin(self, attempts: "list[_Delivery]", producer: Producer, key: bytes, value: bytes | None) -> None:
        attempts.append(_Delivery(producer, self._tp))
        try:
            producer.produce(self._tp.topic, value, key, self._tp.partition, on_delivery=attempts[-1].note)
        except KafkaException as e:
            raise write_error(self._where, f"write to {self._tp}", e.args[0]) from e

    def close(self) -> None:
        """End the client."""
        self._producer = None


@dataclass(slots=True)
class _Delivery:
    producer: Producer
    tp: TopicPartition
    answer: tuple[KafkaError | None, ClientMessage] | None = None

    def note(self, error: KafkaError | None, record: ClientMessage) -> None:
        self.answer = error, record

    def give_up(self) -> None:
        """Nothing is sent from now on. Without it a client lives, and sends, until its record has its answer."""
        self.producer.purge()
        with suppress(KafkaException):
            serve(self.producer.poll, 0)  # a record holds this object until its answer is served, and by it the client

    def written(self, where: str, longest_s: float) -> ClientMessage | None:
        """The record, where it has arrived."""
        what = f"write to {self.tp}"
        try:
            serve(self.producer.poll, min(longest_s, _POLL_S))
        except KafkaException as e:
            raise write_error(where, what, e.args[0]) from e
        if self.answer is None:
            return None
        error, record = self.answer
        if error is not None:
            raise write_error(where, what, error)
        return record
