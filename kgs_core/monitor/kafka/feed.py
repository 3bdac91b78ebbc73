"""One measurement of `monitor.writeSpeed`, named by its offset, and those that come after it."""

from confluent_kafka import Consumer, KafkaException

from kgs_core.config import Settings
from kgs_core.errors import ProtocolError
from kgs_core.kafka.admin import admin_of
from kgs_core.kafka.client_config import reading_client
from kgs_core.kafka.clients import consumer_of
from kgs_core.kafka.errors import port_error
from kgs_core.kafka.records import PARTITION_END, read_until
from kgs_core.model import OffsetRange, TopicPartition
from kgs_core.monitor.kafka.clock import age_s
from kgs_core.monitor.kafka.load import measured_load
from kgs_core.monitor.kafka.topic import topic_name
from kgs_core.monitor.speeds.codec import decode
from kgs_core.planning.load import Load
from kgs_core.system.secret_files import SecretFiles

_PATIENCE_S = 10.0
_AT_ONCE = 100


class MeasurementFeed:
    """Reads from one measurement on; for one thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._topic = topic_name(settings)
        self._consumer: Consumer | None = None
        self._files = SecretFiles({})

    def at(self, offset: int | None) -> Load | None:
        """The measurement at an offset, or the newest one; None: it is not there, or no measurement of ours.

        Raises:
            TransientError: Kafka does not answer.
            PermanentError: refused.
        """
        admin = admin_of(self._settings)
        if self._topic not in admin.describe([self._topic]):
            return None
        tp = TopicPartition(self._topic, 0)
        end = admin.offsets([tp], "latest")[tp]
        wanted = end - 1 if offset is None else offset
        if not admin.offsets([tp], "earliest")[tp] <= wanted < end:
            return None
        self.close()
        self._files = SecretFiles(reading_client(self._settings))
        self._consumer = consumer_of(self._settings)
        where, span = self._settings.kafka.bootstrap_servers, OffsetRange(wanted, wanted + 1)
        record = next(read_until(self._consumer, tp, span, _PATIENCE_S, where=where, at_once=1), None)
        return self._measured(record.value() or b"", wanted) if record is not None else None

    def newest(self) -> Load | None:
        """The newest of those that have come since the last call; None where none has, or nothing was asked before."""
        if self._consumer is None:
            return None
        if self._files.have_changed():
            return self.at(None)
        records = self._arrived()
        return self._measured(records[-1][1], records[-1][0]) if records else None

    def measure(self) -> Load:
        """One of our own, not published: at once where a monitor publishes, else after a window; fails as `Monitor`.

        Raises:
            PortError, ConfigError: Kafka cannot be reached, refuses or stops answering.
        """
        from kgs_core.monitor.kafka.monitor import measure  # with the client that asks for sizes

        return measured_load(self._settings, measure(self._settings))

    def close(self) -> None:
        """End the connection."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _arrived(self) -> list[tuple[int, bytes]]:
        """Offset and value of what has come."""
        if self._consumer is None:
            return []
        where = self._settings.kafka.bootstrap_servers
        what = f"read topic '{self._topic}'"
        try:
            messages = self._consumer.consume(_AT_ONCE, 0)
        except KafkaException as e:
            raise port_error(where, what, e.args[0]) from e
        for message in messages:
            error = message.error()
            if error is not None and error.code() != PARTITION_END:
                raise port_error(where, what, error)
        return [(int(m.offset() or 0), m.value() or b"") for m in messages if m.error() is None]

    def _measured(self, value: bytes, offset: int) -> Load | None:
        try:
            measurement = decode(value)
        except ProtocolError:  # of another version, say
            return None
        return measured_load(self._settings, measurement, offset, age_s(measurement))
