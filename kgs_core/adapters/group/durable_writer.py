"""Writer of one message at a time that knows that it is there: the reports of consumers, what people want."""

import time
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as ClientMessage

from kgs_core.adapters.group.topics import MAX_RECORD_BYTES, GroupTopic, GroupTopics
from kgs_core.adapters.kafka.client_config import admin_client
from kgs_core.adapters.kafka.errors import ConnectionWatch
from kgs_core.adapters.kafka.producers import make_producer, serve, write_error
from kgs_core.adapters.system.secret_files import SecretFiles
from kgs_core.errors import TransientError
from kgs_core.protocol import Approval, DesiredState, DesiredVersion, Heartbeat, Received, Report, Starting
from kgs_core.protocol.record_parts import records_of

_POLL_S = 0.2  # a signal to this process is acted upon between two calls only


_M = TypeVar("_M", bound=Report | Heartbeat | Starting | DesiredState | DesiredVersion | Approval)


class DurableWriter:
    """An idempotent producer with one message in flight; port `ReportWriter`. For one thread.

    A message of several records is in no transaction: killed between two of them, readers pass over the first ones.

    After a failure the client is thrown away with what it has queued, so that nothing piles up behind a broker that is
    gone. What was sent may arrive all the same, in rare cases after what is sent next: readers go by a report's
    sequence number.
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

    def send(self, report: Report | Heartbeat | Starting, timeout_s: float) -> None:
        """See `ReportWriter`.

        Raises:
            TransientError, PermanentError, ProtocolError: see `append`.
        """
        self.append(report, timeout_s)

    def append(self, message: _M, timeout_s: float) -> Received[_M]:
        """Returns once all of its records are on all replicas that are in sync.

        Raises:
            TransientError: not known to be there within `timeout_s`.
            PermanentError: refused.
            ProtocolError: the message is not valid.
        """
        tp = self._tp
        records = records_of(message)
        answers: list[tuple[KafkaError | None, ClientMessage]] = []
        started = time.monotonic()
        if self._producer is None or self._files.have_changed():
            self._files = SecretFiles(self._config)
            self._producer = make_producer(self._where, self._config)
        producer, self._producer = self._producer, None  # kept only after a success
        try:
            for key, value in records:
                producer.produce(tp.topic, value, key, tp.partition, on_delivery=lambda *answer: answers.append(answer))
            while len(answers) < len(records) and (left_s := started + timeout_s - time.monotonic()) > 0:
                serve(producer.poll, min(left_s, _POLL_S))
        except KafkaException as e:
            raise write_error(self._where, f"write to {tp}", e.args[0]) from e
        failed = [error for error, _ in answers if error is not None]
        if failed:
            raise write_error(self._where, f"write to {tp}", failed[0])
        if len(answers) < len(records):
            cause = self._watch.cause_since(started)
            reason = f": {write_error(self._where, 'connect', cause)}" if cause is not None else ""
            raise TransientError(f"Kafka {self._where}: write to {tp}: no answer in {timeout_s:g} s{reason}")
        record = answers[-1][1]
        self._producer = producer
        return Received(message, int(record.offset() or 0), int(record.timestamp()[1]))

    def close(self) -> None:
        """End the client."""
        self._producer = None
