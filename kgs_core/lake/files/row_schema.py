"""The columns of a lake row: what Kafka knows of a record, and what its value, key and headers become."""

from collections.abc import Mapping

import pyarrow as pa

from kgs_core.config import TopicRule
from kgs_core.config.rule.field_types import (
    ArrayType,
    DecimalType,
    FieldType,
    MapType,
    ScalarType,
    StructType,
    parse_type,
)

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
    "byte": pa.int8(),
    "short": pa.int16(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "timestamp": TIMESTAMP,
    "date": pa.date32(),
    "binary": pa.binary(),
}
_NAMES = {kind: name for name, kind in VALUE_TYPES.items()}
RAW_VALUE = pa.field("value", pa.binary())
RESCUED = pa.field("_rescued", pa.string())
DEAD_LETTER_SCHEMA = pa.schema([RAW_VALUE, pa.field("error", pa.string()), *ORIGIN_FIELDS])


def arrow_type(kind: FieldType) -> pa.DataType:
    """The Arrow type of a column, all nullable within; it takes no more than Delta's protocol 1/2."""
    match kind:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(item):
            return pa.list_(arrow_type(item))
        case MapType(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case StructType(fields):
            return pa.struct([pa.field(name, arrow_type(each)) for name, each in fields])
        case _:
            return VALUE_TYPES[kind.name]


def schema_of(columns: Mapping[str, str]) -> pa.Schema:
    """Columns whose types are in the texts of `kgs_core.config.rule.field_types`."""
    return pa.schema([pa.field(name, arrow_type(parse_type(kind))) for name, kind in columns.items()])


def column_types(schema: pa.Schema) -> dict[str, str]:
    """Column -> type in the texts of `kgs_core.config.rule.field_types`; the inverse of `schema_of`.

    Raises:
        KeyError: there is no text for a type.
    """
    return {field.name: str(_field_type(field.type)) for field in schema}


def _field_type(kind: pa.DataType) -> FieldType:
    if pa.types.is_struct(kind):
        return StructType(tuple((field.name, _field_type(field.type)) for field in kind))
    if pa.types.is_map(kind):
        return MapType(_field_type(kind.key_type), _field_type(kind.item_type))
    if pa.types.is_list(kind):
        return ArrayType(_field_type(kind.value_type))
    if pa.types.is_decimal(kind):
        return DecimalType(kind.precision, kind.scale)
    return ScalarType(_NAMES[kind])


def value_schema(rule: TopicRule) -> pa.Schema:
    """The columns that a record's value becomes, as far as the rule says so."""
    return schema_of(rule.value_columns)


def parsed_schema(rule: TopicRule, columns: pa.Schema | None = None) -> pa.Schema:
    """What a transform is given, and what the table holds where there is none.

    `columns`: what a record's value becomes; None: as the rule says.
    """
    rescued = [RESCUED] if rule.unknown_fields == "rescue" else []
    texts = [pa.field(name, pa.string()) for name in (*rule.headers, *rule.topic_columns)]
    values = value_schema(rule) if columns is None else columns
    return pa.schema([*values, *rescued, *schema_of(rule.key_columns), *texts, *ORIGIN_FIELDS])
