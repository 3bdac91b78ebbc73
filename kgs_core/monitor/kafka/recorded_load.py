"""Recorded load of production: the measurements of `monitor.writeSpeed` over a range of time."""

from collections.abc import Iterator

from kgs_core.config import Settings
from kgs_core.errors import ConfigError
from kgs_core.kafka.admin import admin_of
from kgs_core.kafka.clients import consumer_of
from kgs_core.kafka.records import read_until
from kgs_core.model import OffsetRange, TopicPartition
from kgs_core.monitor.kafka.topic import MeasurementReader, topic_name
from kgs_core.monitor.speeds import Measurement
from kgs_core.monitor.speeds.recorded import RecordedMeasurement
from kgs_core.simulation.recorded import published_speeds

_PATIENCE_S = 30.0


def load_recorded(settings: Settings, since_ms: int, until_ms: int, interval_s: float) -> list[RecordedMeasurement]:
    """The measurements that were published in [since_ms, until_ms), ms since 1970, at most one every `interval_s`.

    Raises:
        ConfigError: there is none.
        PortError: refused, or no answer.
    """
    topic = topic_name(settings)
    admin = admin_of(settings)
    tp = TopicPartition(topic, 0)
    if topic not in admin.describe([topic]):
        raise ConfigError([f"topic {topic}: is not there: `kgs monitor` makes it and publishes to it"])
    start, end = (admin.offsets_at([tp], moment)[tp] for moment in (since_ms, until_ms))
    where = settings.kafka.bootstrap_servers
    with consumer_of(settings) as consumer:
        records = read_until(consumer, tp, OffsetRange(start, end), _PATIENCE_S, where=where)
        values = ((record.timestamp()[1], record.value() or b"") for record in records)
        found = list(published_speeds(_thinned(values, topic, interval_s)))
    if not found:
        raise ConfigError([f"topic {topic}: no measurement in that time: name another time, or start `kgs monitor`"])
    return found


def _thinned(values: Iterator[tuple[int, bytes]], topic: str, interval_s: float) -> Iterator[Measurement]:
    """The first measurement of each interval. Others are not even decoded: a week has some hundred thousand."""
    due: int | None = None
    reader = MeasurementReader(topic)
    for timestamp_ms, value in values:
        if due is not None and timestamp_ms < due:
            continue
        if (measurement := reader.measurement_in(value)) is None:
            continue
        due = (timestamp_ms if due is None else due) + round(interval_s * 1000)
        if due <= timestamp_ms:  # nothing was published for a while
            due = timestamp_ms + round(interval_s * 1000)
        yield measurement
