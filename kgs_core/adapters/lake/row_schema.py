"""The columns of a lake row: what Kafka knows of a record, and the value columns of its format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

from kgs_core.adapters.kafka.records import UNREADABLE, Record, headers_of
from kgs_core.config import TopicRule
from kgs_core.model import TopicId

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
TIMESTAMP = pa.timestamp("us", tz="UTC")  # a naive one would raise the table's protocol
ORIGIN_FIELDS = (
    pa.field("_topic_id", pa.string()),
    pa.field("_partition", pa.int32()),
    pa.field("_offset", pa.int64()),
    pa.field("_timestamp", TIMESTAMP),
    pa.field("_key", pa.binary()),
    pa.field("_headers", HEADERS),
)
IDENTITY = ("_topic_id", "_partition", "_offset")
VALUE_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "timestamp": TIMESTAMP,
    "date": pa.date32(),
}
MAX_MS = (2**63 - 1) // 1000  # what fits in a column of us
Row = list[tuple[str, bytes | None]]
RAW_VALUE = pa.field("value", pa.binary())
_COLUMN_TYPES = {**VALUE_TYPES, "binary": RAW_VALUE.type}
DEAD_LETTER_SCHEMA = pa.schema([RAW_VALUE, pa.field("error", pa.string()), *ORIGIN_FIELDS])


def value_schema(rule: TopicRule) -> pa.Schema:
    """The columns that a record's value becomes."""
    return pa.schema([pa.field(name, _COLUMN_TYPES[kind]) for name, kind in rule.value_columns.items()])


def parsed_schema(rule: TopicRule) -> pa.Schema:
    """What a transform is given, and what the table holds where there is none."""
    return pa.schema([*value_schema(rule), *ORIGIN_FIELDS])


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of some records: what Kafka knows of them.

    Attributes:
        table: `ORIGIN_FIELDS`, one row a record, in their order.
        faults: position of a record -> what of it no column can take; null stands in its place.
    """

    table: pa.Table
    faults: dict[int, str]


def origin_of(topic_id: TopicId, messages: Sequence[Record]) -> Origin:
    """The origin columns of these records; a fault of one record changes nothing for the others."""
    faults: dict[int, str] = {}
    columns = [
        pa.repeat(pa.scalar(topic_id, pa.string()), len(messages)),
        pa.array([m.partition() for m in messages], pa.int32()),
        pa.array([m.offset() for m in messages], pa.int64()),
        pa.array(_times_us(messages, faults), TIMESTAMP),
        pa.array([m.key() for m in messages], pa.binary()),
        pa.array(_all_headers(messages, faults), HEADERS),
    ]
    return Origin(pa.Table.from_arrays(columns, schema=pa.schema(ORIGIN_FIELDS)), faults)


def _times_us(messages: Sequence[Record], faults: dict[int, str]) -> list[int | None]:
    """Kafka's timestamps, us since 1970; None where there is none."""
    times: list[int | None] = []
    for i, message in enumerate(messages):
        kind, ms = message.timestamp()
        if kind == TIMESTAMP_NOT_AVAILABLE:
            times.append(None)
        elif -MAX_MS <= ms <= MAX_MS:
            times.append(ms * 1000)
        else:
            times.append(None)
            faults[i] = f"timestamp of the record: {ms} ms since 1970 is out of range"
    return times


def _all_headers(messages: Sequence[Record], faults: dict[int, str]) -> list[Row | None]:
    rows: list[Row | None] = []
    for i, message in enumerate(messages):
        headers = headers_of(message)
        if headers is UNREADABLE:
            rows.append(None)
            faults[i] = "header of the record: a key that is not UTF-8"
        else:
            rows.append([(k, v.encode() if isinstance(v, str) else v) for k, v in headers or ()])
    return rows
