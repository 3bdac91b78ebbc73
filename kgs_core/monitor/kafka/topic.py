"""The topic `monitor.writeSpeed`: measurements published by one monitor and read by whoever wants them.

All of them are there for an hour at least: for a monitor that is started anew, and for whoever was referred to one by
its offset. Then the brokers compact the topic: the first one of each minute has a key of its own and stays for
`RETENTION_H`, all others share one key.
"""

import logging
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kgs_core.config import Settings
from kgs_core.config.monitor import RETENTION_H
from kgs_core.errors import PermanentError, PortError, ProtocolError
from kgs_core.kafka.admin import CLUSTER_DEFAULT, KafkaAdmin
from kgs_core.kafka.client_config import admin_client
from kgs_core.kafka.clients import RotatingClient, consumer_of
from kgs_core.kafka.records import read_until
from kgs_core.kafka.topic_description import message_limit_problems
from kgs_core.model import OffsetRange, TopicPartition
from kgs_core.monitor.speeds import Measurement
from kgs_core.monitor.speeds.codec import MAX_BYTES, decode, encode
from kgs_core.system.patience import LogOnChange

MAX_RECORD_BYTES = 8_388_608
"""Of one measurement as the brokers get it, compressed."""
KEPT_WHOLE_MS = 3_600_000
_SEGMENT_MS = 600_000  # the segment that is written to is not compacted
_MINUTE_MS = 60_000
_OTHERS = b"others"
_THINNED = {
    "cleanup.policy": "compact,delete",
    "min.compaction.lag.ms": str(KEPT_WHOLE_MS),
    "segment.ms": str(_SEGMENT_MS),
    "min.cleanable.dirty.ratio": "0.3",
}
_PATIENCE_S = 10.0
_log = logging.getLogger(__name__)


def topic_name(settings: Settings) -> str:
    """The topic's full name."""
    return f"kgs.{settings.group}.monitor.writeSpeed"


def create_topic(settings: Settings, admin: KafkaAdmin) -> None:
    """Makes the topic if it is missing. One that is there stays as it is; what it should have otherwise is logged.

    Raises:
        PortError: refused, or no answer.
    """
    config = {
        **_THINNED,
        "retention.ms": str(RETENTION_H * 3_600_000),
        "max.message.bytes": str(MAX_RECORD_BYTES),
    }
    topic = topic_name(settings)
    if admin.create_topic(topic, 1, CLUSTER_DEFAULT, config):
        return
    try:
        found = admin.topic_config(topic)
    except PermanentError:  # whoever may write need not have the right to ask
        return
    for problem in message_limit_problems(topic, found, MAX_RECORD_BYTES):
        _log.warning("%s (else the measurements of very many partitions are refused)", problem)
    policy = found.get("cleanup.policy", "")
    if "compact" not in policy:
        wanted = ",".join(f"{name}={f'[{value}]' if ',' in value else value}" for name, value in _THINNED.items())
        _log.warning(
            "topic %s: cleanup.policy is %s: it keeps every measurement; to keep one a minute: `kafka-configs.sh "
            "--alter --topic %s --add-config %s` (those without a key, of earlier versions, go)",
            topic,
            policy,
            topic,
            wanted,
        )


class Publisher:
    """Writer of measurements. No one waits for a slow broker: after 10 s a record is dropped and logged."""

    def __init__(self, settings: Settings) -> None:
        self._topic = topic_name(settings)
        self._where = settings.kafka.bootstrap_servers
        self._newest: int | None = None
        self._minute: int | None = None
        self._say = LogOnChange(partial(_log.warning, "measurement not published to %s: %s; said once", self._topic))
        config: dict[str, Any] = {
            **admin_client(settings),
            "acks": "all",
            "enable.idempotence": True,
            "compression.type": "zstd",
            "message.max.bytes": MAX_BYTES,  # the client counts before it compresses
            "message.timeout.ms": round(_PATIENCE_S * 1000),
            "log_level": 2,
            "on_delivery": self._count,
        }
        self._made = RotatingClient(config, Producer)

    def send(self, measurement: Measurement) -> None:
        """Queue one measurement."""
        try:
            producer = self._made.get()
            producer.produce(self._topic, encode(measurement), self._key(measurement), partition=0)
            producer.poll(0)
        except (KafkaException, BufferError, PortError) as e:
            self._fail(str(e))

    def _key(self, measurement: Measurement) -> bytes:
        minute = measurement.reading.wall_ms // _MINUTE_MS
        is_first, self._minute = minute != self._minute, minute
        return f"minute {minute}".encode() if is_first else _OTHERS

    def settle(self, timeout_s: float) -> int | None:
        """The offset of what was sent last; None when that has not arrived within `timeout_s`, or never will."""
        return self._newest if self._made.get().flush(timeout_s) == 0 else None

    def close(self) -> None:
        """Wait for the answers to what was sent."""
        if (producer := self._made.take()) is not None:
            producer.flush(_PATIENCE_S)

    def _count(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._newest = message.offset()
            self._say("")
        else:
            self._fail(error.str())

    def _fail(self, reason: str) -> None:
        self._newest = None
        self._say(reason)


class MeasurementReader:
    """Reader of the topic's records: some may be no measurement, or of a version that is not known here."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._has_refused = False

    def measurement_in(self, value: bytes) -> Measurement | None:
        """The measurement; None where it is none, which is logged once."""
        try:
            return decode(value)
        except ProtocolError as e:
            if not self._has_refused:
                _log.warning("topic %s: %s", self._topic, e)
            self._has_refused = True
            return None


def load_history(settings: Settings, admin: KafkaAdmin, records: int) -> list[Measurement]:
    """The measurements in the topic's last records, so many at most, in order; none where there is no topic.

    Raises:
        PortError: refused, or no answer.
    """
    topic = topic_name(settings)
    if topic not in admin.describe([topic]):
        return []
    tp = TopicPartition(topic, 0)
    end = admin.offsets([tp], "latest")[tp]
    span = OffsetRange(max(admin.offsets([tp], "earliest")[tp], end - records), end)
    where = settings.kafka.bootstrap_servers
    with consumer_of(settings) as consumer:
        values = [record.value() or b"" for record in read_until(consumer, tp, span, _PATIENCE_S, where=where)]
    reader = MeasurementReader(topic)
    return [measurement for value in values if (measurement := reader.measurement_in(value)) is not None]
