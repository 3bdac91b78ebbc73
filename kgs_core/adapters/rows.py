"""The columns of a lake row: what Kafka knows of a record, and the value columns of its format."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

from kgs_core.adapters.records import Record
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
RAW_VALUE = pa.field("value", pa.binary())
LETTER_SCHEMA = pa.schema([RAW_VALUE, pa.field("error", pa.string()), *ORIGIN_FIELDS])


def value_schema(rule: TopicRule) -> pa.Schema:
    """The columns that a record's value becomes."""
    if rule.format == "raw":
        return pa.schema([RAW_VALUE])
    return pa.schema([pa.field(name, VALUE_TYPES[kind]) for name, kind in rule.fields.items()])


def parsed_schema(rule: TopicRule) -> pa.Schema:
    """What a transform is given, and what the table holds where there is none."""
    return pa.schema([*value_schema(rule), *ORIGIN_FIELDS])


def origin_columns(topic_id: TopicId, messages: Sequence[Record]) -> list[pa.Array]:
    """`ORIGIN_FIELDS` of these records, in their order."""
    return [
        pa.repeat(pa.scalar(topic_id, pa.string()), len(messages)),
        pa.array([m.partition() for m in messages], pa.int32()),
        pa.array([m.offset() for m in messages], pa.int64()),
        pa.array([timestamp_us(m) for m in messages], TIMESTAMP),
        pa.array([m.key() for m in messages], pa.binary()),
        pa.array([_headers(m) for m in messages], HEADERS),
    ]


def timestamp_us(message: Record) -> int | None:
    """Kafka's timestamp of a record, us since 1970; None where it has none."""
    kind, ms = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else ms * 1000


def _headers(message: Record) -> list[tuple[str, bytes | None]]:
    return [(key, value.encode() if isinstance(value, str) else value) for key, value in message.headers() or ()]
