"""From a measurement to the load that a plan is made for."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Optional

from kgs_core.config import Settings
from kgs_core.model import TopicPartition
from kgs_core.monitor.speeds import Measurement, PartitionReading
from kgs_core.planning.load import Load

if TYPE_CHECKING:
    from kgs_core.lake.topics.stats import LakeView  # takes a second to import, and most groups never ask for it

BACKLOG_EVERY_S = 5.0
"""To ask the lake for every position takes longer than to ask Kafka for sizes."""
_log = logging.getLogger(__name__)


def measured_load(settings: Settings, measurement: Measurement, lake: Optional["LakeView"] = None) -> Load:
    """Speeds, what is unknown, and backlog and end offsets where the settings ask for them. Changes nothing.

    A partition that has vanished is unknown until the monitor has not seen it for a whole window: a broker whose
    metadata lag answers for a moment as if a topic were not there. If no rule matches its topic any more, it is gone at
    once.

    Args:
        lake: kept by whoever asks again and again; it then reads of the tables' logs only what is new.
    """
    known, partitions = measurement.known, measurement.reading.partitions
    unknown = measurement.speeds.keys() - known.keys()
    ours = {topic for topic in {tp.topic for tp in unknown} if settings.rule_of(topic) is not None}
    lag = _lag_bytes(lake or lake_view(settings), partitions) if settings.packing.catch_up_s else {}
    logs = partitions if settings.packing.idle_after_s is not None else {}
    return Load(
        known,
        frozenset(tp for tp in unknown if tp.topic in ours),
        {tp: size for tp, size in lag.items() if tp in known},
        bytes_per_offset=bytes_per_offset(partitions),
        ends={tp: log.end_offset for tp, log in logs.items()},
        topic_ids={tp.topic: log.topic_id for tp, log in logs.items()},
        zones={tp: log.zone for tp, log in partitions.items() if log.zone},
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


def lake_view(settings: Settings) -> "LakeView":
    """The view to hand to `measured_load`."""
    from kgs_core.lake.topics.stats import LakeView

    return LakeView(settings)


def _lag_bytes(lake: "LakeView", partitions: Mapping[TopicPartition, PartitionReading]) -> dict[TopicPartition, float]:
    """Stored bytes that the lake has not yet, where that is known; the other partitions are named in the log."""
    found: dict[TopicPartition, float] = {}
    for table in lake.snapshot().tables:
        for number in table.ends:
            tp = TopicPartition(table.topic, number)
            lag, size = table.lag_of(number), bytes_per_record(partitions.get(tp))
            if lag is None or size is None:
                _log.warning("backlog of %s is not known and not counted", tp)
            else:
                found[tp] = lag * size
    return found


def bytes_per_record(reading: PartitionReading | None) -> float | None:
    """Stored bytes per offset; None where nothing tells it."""
    if reading is None:
        return None
    offsets = reading.end_offset - reading.log_start
    if reading.size_bytes is not None and offsets > 0:
        return reading.size_bytes / offsets
    return reading.bytes_per_record if reading.bytes_per_record is not None else (0.0 if offsets == 0 else None)
