"""Sample of a topic's newest records, read without a group: neither positions nor the topic are changed by it."""

import time
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as KafkaPosition

from kgs_core.config import Settings
from kgs_core.errors import ConfigError
from kgs_core.kafka.admin import admin_of
from kgs_core.kafka.clients import consumer_of
from kgs_core.kafka.errors import port_error
from kgs_core.kafka.records import PARTITION_END, RANGE_ERRORS, Record, arrived
from kgs_core.model import OffsetRange, TopicPartition

_POLL_S = 0.2
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class TopicSample:
    """Values of a topic's newest records, as many of each partition as of any other, as far as it has them.

    Attributes:
        keys: of the same records.
        partitions: of the topic.
        is_whole: whether all was read that was looked for, and not only what came in time.
    """

    values: list[bytes | None]
    keys: list[bytes | None]
    partitions: int
    is_whole: bool


def sample_topic(settings: Settings, topic: str, records: int, seconds: float) -> TopicSample:
    """At most so many of the topic's newest records, in at most so much time of reading.

    Raises:
        ConfigError: there is no such topic.
        PortError: Kafka did not answer, or refused.
    """
    admin = admin_of(settings)
    found = admin.describe([topic]).get(topic)
    if found is None:
        raise ConfigError(
            [f"topic {topic}: there is none on {settings.kafka.bootstrap_servers}: `kgs topics list` lists them"]
        )
    tps = [TopicPartition(topic, partition) for partition in range(found.partitions)]
    first, end = admin.offsets(tps, "earliest"), admin.offsets(tps, "latest", committed_reads=True)
    share = max(1, records // len(tps))
    spans = {tp.partition: OffsetRange(max(first[tp], end[tp] - share), end[tp]) for tp in tps if end[tp] > first[tp]}
    taken = _read(settings, topic, spans, time.monotonic() + seconds)
    newest = [record for part in taken.values() for record in part][:records]
    values, keys = [record.value() for record in newest], [record.key() for record in newest]
    return TopicSample(values, keys, len(tps), is_whole=None not in taken)


def _read(
    settings: Settings, topic: str, spans: dict[int, OffsetRange], until: float
) -> dict[int | None, list[Record]]:
    """Partition -> its records in the span; the key None where time was over first."""
    taken: dict[int | None, list[Record]] = {partition: [] for partition in spans}
    if not spans:
        return taken
    left = set(spans)
    where, what = settings.kafka.bootstrap_servers, f"read topic '{topic}'"
    with consumer_of(settings) as consumer:
        try:
            consumer.assign([KafkaPosition(topic, partition, span.start) for partition, span in spans.items()])
            while left and time.monotonic() < until:
                for record in arrived(consumer, _AT_ONCE, _POLL_S):
                    partition, error = record.partition(), record.error()
                    if error is None and record.offset() < spans[partition].end:
                        taken[partition].append(record)
                    if error is not None and error.code() not in {PARTITION_END, *RANGE_ERRORS}:
                        raise port_error(where, what, error)
                    if error is not None or record.offset() + 1 >= spans[partition].end:
                        left.discard(partition)
        except KafkaException as e:
            raise port_error(where, what, e.args[0]) from e
    return taken | ({None: []} if left else {})
