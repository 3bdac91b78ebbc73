"""Appending one record and knowing that it is there: the writers of consumers and people."""

import time
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as ClientMessage

from kgs_core.adapters.group.topics import MAX_RECORD_BYTES
from kgs_core.adapters.kafka.client_config import admin_client
from kgs_core.adapters.kafka.errors import ConnectionWatch
from kgs_core.adapters.kafka.producers import make_producer, serve, write_error
from kgs_core.config import Settings
from kgs_core.errors import TransientError
from kgs_core.model import TopicPartition

_POLL_S = 0.2  # a signal to this process is acted upon between two calls only


class Appended(NamedTuple):
    """Place of a record that was appended.

    Attributes:
        timestamp_ms: the broker's clock.
    """

    offset: int
    timestamp_ms: int


class DurableWriter:
    """An idempotent producer with one record in flight. For one thread.

    After a failure the client is thrown away with what it has queued, so that nothing piles up behind a broker that is
    gone. What was sent may arrive all the same, in rare cases after what is sent next.
    """

    def __init__(self, settings: Settings) -> None:
        self._where = settings.kafka.bootstrap_servers
        self._watch = ConnectionWatch()
        self._producer: Producer | None = None
        self._config: dict[str, Any] = {
            "reconnect.backoff.max.ms": 1000,
            **admin_client(settings),
            "acks": "all",
            "enable.idempotence": True,
            "message.timeout.ms": 0,  # the caller's patience counts
            "message.max.bytes": MAX_RECORD_BYTES,
            "compression.type": "lz4",
            "linger.ms": 0,
            "error_cb": self._watch.note,
        }

    def append(self, tp: TopicPartition, key: bytes | None, value: bytes | None, timeout_s: float) -> Appended:
        """Returns once the record is on all replicas that are in sync.

        Raises:
            TransientError: not known to be there within `timeout_s`.
            PermanentError: refused.
        """
        answers: list[tuple[KafkaError | None, ClientMessage]] = []
        started = time.monotonic()
        producer = self._producer or make_producer(self._where, self._config)
        self._producer = None  # kept only after a success
        try:
            producer.produce(tp.topic, value, key, tp.partition, on_delivery=lambda *answer: answers.append(answer))
            while not answers and (left_s := started + timeout_s - time.monotonic()) > 0:
                serve(producer.poll, min(left_s, _POLL_S))
        except KafkaException as e:
            raise write_error(self._where, f"write to {tp}", e.args[0]) from e
        if not answers:
            cause = self._watch.cause_since(started)
            reason = f": {write_error(self._where, 'connect', cause)}" if cause is not None else ""
            raise TransientError(f"Kafka {self._where}: write to {tp}: no answer in {timeout_s:g} s{reason}")
        error, message = answers[0]
        if error is not None:
            raise write_error(self._where, f"write to {tp}", error)
        self._producer = producer
        return Appended(int(message.offset() or 0), int(message.timestamp()[1]))

    def close(self) -> None:
        """End the client."""
        self._producer = None
