"""A measurement as the JSON of one record of `monitor.writeSpeed`, and back; version 2, for 1 was never released.

Partitions stand in the order of `topics`, and every other quantity is one column over all of them. A column is a list
with a value for each partition, or, where few values repeat, these values and for each partition which one it is;
without that, the first one is everybody's.
"""

from collections.abc import Hashable, Sequence
from itertools import groupby
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from kgs_core.errors import ProtocolError
from kgs_core.model import TopicId, TopicPartition
from kgs_core.monitor.speeds.measurement import Measure, Measurement, PartitionReading, PartitionSpeed, Reading, Verdict

VERSION: Literal[2] = 2
MAX_BYTES = 32_000_000
"""Of one record, uncompressed: about 500,000 partitions."""
MAX_TEXT = 1000
_SIGNIFICANT = 6
"""Digits of a speed: wrong by five millionths of it at most. The readings beside it are exact."""
_REPEATED = 4

T = TypeVar("T")
_Name = Annotated[str, Field(min_length=1, max_length=300)]
_Text = Annotated[str, Field(max_length=MAX_TEXT)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]
_Number = Annotated[int, Field(ge=0, lt=2**31)]
_NotNegative = Annotated[float, Field(ge=0)]


class _Columnar(BaseModel):
    # Fields that a later minor change adds are passed over; what changes the meaning of others raises the version
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


class _Coded(_Columnar, Generic[T]):
    """A column of few values; `at` says which one each partition has, None: all have the first."""

    values: Annotated[tuple[T, ...], Field(strict=False, min_length=1)]
    at: Annotated[tuple[_Number, ...], Field(strict=False)] | None = None


_Column = _Coded[T] | Annotated[tuple[T, ...], Field(strict=False)]


class _TopicRows(_Columnar):
    """Partitions of one topic; one that was not read has no id of its topic."""

    topic: _Name
    topic_id: _Text
    partitions: Annotated[tuple[_Number, ...], Field(strict=False)]


class _Columns(_Columnar):
    """What is known of each partition; `end_offset` and the others of its log are null where it was not read."""

    bytes_per_s: _Column[_NotNegative | None]
    verdict: _Column[Annotated[Verdict, Field(strict=False)]]
    reason: _Column[_Text]
    unknown: _Column[_Text | None]
    time_s: _Column[float | None]
    offsets_s: _Column[float | None]
    leader: _Column[Annotated[int, Field(ge=-1, lt=2**31)] | None]
    log_start: _Column[int | None]
    end_offset: _Column[int | None]
    size_bytes: _Column[int | None]
    bytes_per_record: _Column[_NotNegative | None]
    zone: _Column[_Text | None] = _Coded(values=(None,))


class _Versioned(BaseModel):
    """What is looked at first, so that an unknown version is called by that name."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    version: Annotated[int, Field(strict=True, ge=VERSION, le=VERSION)]


class _Record(_Columnar):
    version: Literal[2]
    time_s: float
    wall_ms: _Count
    clock: _Name
    measure: Annotated[Measure, Field(strict=False)]
    topics: Annotated[tuple[_TopicRows, ...], Field(strict=False)]
    columns: _Columns


_LOG = ("time_s", "offsets_s", "leader", "log_start", "end_offset", "size_bytes", "bytes_per_record", "zone")


def encode(measurement: Measurement) -> bytes:
    """The record's value: a JSON object, every quantity under a name that ends in its unit."""
    reading = measurement.reading
    nobody = TopicId("")
    rows = sorted(
        (
            (tp.topic, log.topic_id if (log := reading.partitions.get(tp)) else nobody, tp.partition, log, speed)
            for tp, speed in measurement.speeds.items()
        ),
        key=lambda row: row[:3],
    )
    logs = [row[3] for row in rows]
    speeds = [row[4] for row in rows]
    unknown = [reading.unknown.get(TopicPartition(row[0], row[2])) for row in rows]
    columns: dict[str, Sequence[Hashable]] = {
        "bytes_per_s": [_rounded(speed.bytes_per_s) for speed in speeds],
        "verdict": [str(speed.verdict) for speed in speeds],
        "reason": [speed.reason[:MAX_TEXT] for speed in speeds],
        "unknown": [why if why is None else why[:MAX_TEXT] for why in unknown],
    }
    for name in _LOG:
        columns[name] = [None if log is None else getattr(log, name) for log in logs]
    if not any(columns["zone"]):  # it came later than the rest
        del columns["zone"]
    record = {
        "version": VERSION,
        "time_s": reading.time_s,
        "wall_ms": reading.wall_ms,
        "clock": reading.clock,
        "measure": str(reading.measure),
        "topics": [
            {"topic": topic, "topic_id": topic_id, "partitions": [row[2] for row in same]}
            for (topic, topic_id), same in groupby(rows, key=lambda row: row[:2])
        ],
        "columns": {name: _column(column) for name, column in columns.items()},
    }
    return to_json(record)


def decode(data: bytes) -> Measurement:
    """The measurement in a record's value.

    Raises:
        ProtocolError: too large, no JSON, a version that is not known, a field that is missing or out of its range.
    """
    if len(data) > MAX_BYTES:
        raise ProtocolError(f"measurement: {len(data)} bytes, more than {MAX_BYTES}: left out")
    try:
        _Versioned.model_validate_json(data)
        return _measurement_of(_Record.model_validate_json(data))
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the record"
        raise ProtocolError(f"measurement: {where}: {first['msg']}: left out") from e


def _measurement_of(record: _Record) -> Measurement:
    tps = [TopicPartition(each.topic, number) for each in record.topics for number in each.partitions]
    ids = [TopicId(each.topic_id) for each in record.topics for _ in each.partitions]
    columns = {name: _values(name, getattr(record.columns, name), len(tps)) for name in _Columns.model_fields}
    speeds = map(PartitionSpeed, columns["verdict"], columns["bytes_per_s"], columns["reason"])
    logs: dict[TopicPartition, PartitionReading] = {}
    for tp, topic_id, *log in zip(tps, ids, *(columns[name] for name in _LOG), strict=True):
        time_s, offsets_s, leader, log_start, end_offset, size_bytes, bytes_per_record, zone = log
        if None not in (time_s, offsets_s, leader, log_start, end_offset):
            logs[tp] = PartitionReading(
                time_s, offsets_s, topic_id, leader, log_start, end_offset, size_bytes, bytes_per_record, zone
            )
    unknown = {tp: why for tp, why in zip(tps, columns["unknown"], strict=True) if why is not None}
    reading = Reading(record.time_s, record.wall_ms, record.clock, record.measure, logs, unknown)
    return Measurement(reading, dict(sorted(zip(tps, speeds, strict=True))))


def _rounded(speed: float | None) -> float | None:
    return speed if speed is None else float(f"{speed:.{_SIGNIFICANT}g}")


def _column(values: Sequence[Hashable]) -> Any:
    distinct = {value: number for number, value in enumerate(dict.fromkeys(values))}
    if len(distinct) == 1 and len(values) > 1:
        return {"values": list(distinct)}
    if not values or len(distinct) * _REPEATED > len(values):
        return values
    return {"values": list(distinct), "at": [distinct[value] for value in values]}


def _values(name: str, column: Any, count: int) -> Sequence[Any]:
    if not isinstance(column, _Coded):
        found: Sequence[Any] = column
    elif column.at is None:
        found = column.values[:1] * count
    elif max(column.at, default=0) < len(column.values):
        found = [column.values[number] for number in column.at]
    else:
        found = ()
    if len(found) != count:
        raise ProtocolError(f"measurement: columns.{name}: no value for each of {count} partitions: left out")
    return found
