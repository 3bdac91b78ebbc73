"""The columns of a lake row: what Kafka knows of a record, and the value columns of its format."""

from collections.abc import Mapping

import pyarrow as pa

from kgs_core.config import TopicRule

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
_COLUMN_TYPES = {**VALUE_TYPES, "binary": RAW_VALUE.type}
DEAD_LETTER_SCHEMA = pa.schema([RAW_VALUE, pa.field("error", pa.string()), *ORIGIN_FIELDS])


def value_schema(rule: TopicRule) -> pa.Schema:
    """The columns that a record's value becomes, as far as the rule says so."""
    return pa.schema([pa.field(name, _COLUMN_TYPES[kind]) for name, kind in rule.value_columns.items()])


def parsed_schema(rule: TopicRule, columns: pa.Schema | None = None) -> pa.Schema:
    """What a transform is given, and what the table holds where there is none.

    Args:
        rule: the topic's.
        columns: what a record's value becomes; None: as the rule says.
    """
    return pa.schema([*(value_schema(rule) if columns is None else columns), *ORIGIN_FIELDS])
