"""From a measurement to the load that a plan is made for."""

from collections.abc import Mapping

from kgs_core.config import Settings
from kgs_core.model import TopicPartition
from kgs_core.monitor.speeds import Measurement, PartitionReading
from kgs_core.planning.load import Load


def measured_load(settings: Settings, measurement: Measurement, offset: int | None = None, age_s: float = 0.0) -> Load:
    """Speeds, what is unknown, and end offsets where the settings ask for them. Changes nothing.

    A partition that has vanished is unknown until the monitor has not seen it for a whole window: a broker whose
    metadata lag answers for a moment as if a topic were not there. If no rule matches its topic any more, it is gone at
    once.
    """
    known, partitions = measurement.known, measurement.reading.partitions
    unknown = measurement.speeds.keys() - known.keys()
    ours = {topic for topic in {tp.topic for tp in unknown} if settings.rule_of(topic) is not None}
    logs = partitions if settings.packing.idle_after_s is not None else {}
    return Load(
        known,
        frozenset(tp for tp in unknown if tp.topic in ours),
        bytes_per_offset=bytes_per_offset(partitions),
        ends={tp: log.end_offset for tp, log in logs.items()},
        topic_ids={tp.topic: log.topic_id for tp, log in logs.items()},
        zones={tp: log.zone for tp, log in partitions.items() if log.zone},
        measurement_offset=offset,
        age_s=age_s,
    )


def bytes_per_offset(partitions: Mapping[TopicPartition, PartitionReading]) -> dict[str, float]:
    """Topic -> stored bytes of one offset, on average over the logs of its partitions; without what is not known."""
    sizes: dict[str, float] = {}
    offsets: dict[str, int] = {}
    for tp, reading in partitions.items():
        count, each = reading.end_offset - reading.log_start, bytes_per_record(reading)
        if count > 0 and each is not None:
            sizes[tp.topic] = sizes.get(tp.topic, 0.0) + count * each
            offsets[tp.topic] = offsets.get(tp.topic, 0) + count
    return {topic: size / offsets[topic] for topic, size in sizes.items()}


def bytes_per_record(reading: PartitionReading | None) -> float | None:
    """Stored bytes per offset; None where nothing tells it."""
    if reading is None:
        return None
    offsets = reading.end_offset - reading.log_start
    if reading.size_bytes is not None and offsets > 0:
        return reading.size_bytes / offsets
    return reading.bytes_per_record if reading.bytes_per_record is not None else (0.0 if offsets == 0 else None)
