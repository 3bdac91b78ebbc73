"""A measurement as the JSON of one record of `monitor.writeSpeed`, and back.

Written in columns (`columns`, version 2); version 1, with an object for each partition, is still read.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from kgs_core.errors import ProtocolError
from kgs_core.model import TopicId, TopicPartition
from kgs_core.monitor import columns
from kgs_core.monitor.measurement import Measure, Measurement, PartitionReading, PartitionSpeed, Reading, Verdict

MAX_BYTES = 32_000_000
"""Of one record, uncompressed: about 500,000 partitions."""

_Name = Annotated[str, Field(min_length=1, max_length=300)]
_Text = Annotated[str, Field(max_length=columns.MAX_TEXT)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]
_NotNegative = Annotated[float, Field(ge=0)]


class _Wire(BaseModel):
    # Fields that a later minor change adds are passed over; what changes the meaning of others raises the version
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


class _Log(_Wire):
    """A partition's reading."""

    time_s: float
    offsets_s: float
    leader: Annotated[int, Field(ge=-1, lt=2**31)]
    log_start: int
    end_offset: int
    size_bytes: int | None = None
    bytes_per_record: _NotNegative | None = None


class _Partition(_Wire):
    partition: Annotated[int, Field(ge=0, lt=2**31)]
    bytes_per_s: _NotNegative | None = None
    verdict: Annotated[Verdict, Field(strict=False)]
    reason: _Text = ""
    log: _Log | None = None
    unknown: _Text | None = None


class _Topic(_Wire):
    topic: _Name
    topic_id: _Text
    partitions: Annotated[tuple[_Partition, ...], Field(strict=False)]


class _Record(_Wire):
    version: Literal[1]
    time_s: float
    wall_ms: _Count
    clock: _Name
    measure: Annotated[Measure, Field(strict=False)]
    topics: Annotated[tuple[_Topic, ...], Field(strict=False)]


class _Versioned(_Wire):
    """What is looked at first, so that an unknown version is called by that name."""

    version: Literal[1, 2]


def encode(measurement: Measurement) -> bytes:
    """The record's value: a JSON object, every quantity under a name that ends in its unit."""
    return to_json(columns.columnar(measurement))


def decode(data: bytes) -> Measurement:
    """The measurement in a record's value.

    Raises:
        ProtocolError: too large, no JSON, a version that is not known, a field that is missing or out of its range.
    """
    if len(data) > MAX_BYTES:
        raise ProtocolError(f"measurement: {len(data)} bytes, more than {MAX_BYTES}: left out")
    try:
        if _Versioned.model_validate_json(data).version == columns.VERSION:
            return columns.measurement_of(columns.ColumnarRecord.model_validate_json(data))
        return _measurement_of(_Record.model_validate_json(data))
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the record"
        raise ProtocolError(f"measurement: {where}: {first['msg']}: left out") from e


def _measurement_of(record: _Record) -> Measurement:
    speeds: dict[TopicPartition, PartitionSpeed] = {}
    logs: dict[TopicPartition, PartitionReading] = {}
    unknown: dict[TopicPartition, str] = {}
    for topic in record.topics:
        for found in topic.partitions:
            tp = TopicPartition(topic.topic, found.partition)
            speeds[tp] = PartitionSpeed(found.verdict, found.bytes_per_s, found.reason)
            if found.log is not None:
                logs[tp] = _reading(TopicId(topic.topic_id), found.log)
            if found.unknown is not None:
                unknown[tp] = found.unknown
    return Measurement(Reading(record.time_s, record.wall_ms, record.clock, record.measure, logs, unknown), speeds)


def _reading(topic_id: TopicId, log: _Log) -> PartitionReading:
    return PartitionReading(
        log.time_s,
        log.offsets_s,
        topic_id,
        log.leader,
        log.log_start,
        log.end_offset,
        log.size_bytes,
        log.bytes_per_record,
    )
