"""JSON objects whose schema a registry has, to columns."""

from dataclasses import replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.adapters.ingest.formats.by_schema import Pieces, latest_schema, parse_by_schema, usable_columns
from kgs_core.adapters.ingest.formats.json_objects import parse_json
from kgs_core.adapters.ingest.formats.json_schema_types import columns_of_schema, fields_of_schema
from kgs_core.adapters.ingest.formats.parsed import NO_COLUMNS, NoColumnsError, Parsed, UnusableSchemaError, ValueBatch
from kgs_core.adapters.lake.columns import lacking
from kgs_core.adapters.registry.wire_format import FramedValues, SchemaGroup, byte_ranges
from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.ports.registry import RegisteredSchema, SchemaKind

_END = 2**31 - 1


def parse_json_schema(batch: ValueBatch) -> Parsed:
    """JSON objects behind the frame of a registry to columns, as `parse_json` makes them.

    A value is judged by its columns alone. Its schema says which others there could be, and no more: what it demands
    (`required`, `minimum`, `pattern`) is not looked at.
    """
    begins = byte_ranges(batch.values)[1]

    def decode(schema: RegisteredSchema, group: SchemaGroup, _framed: FramedValues, pieces: Pieces) -> None:
        chosen = pa.array(group.positions, pa.int64())
        frame = int(group.starts[0] - begins[group.positions[0]])
        # With an end, which pyarrow takes ill if it is left out
        values = pc.binary_slice(batch.values.take(chosen), frame, stop=_END)
        headers = None if batch.headers is None else batch.headers.take(chosen)
        pieces.take(
            parse_json(replace(batch, values=values, headers=headers)), group.positions, _lacking(schema, batch)
        )

    return parse_by_schema(batch, SchemaKind.JSON, decode)


def columns_of(topic: str, _rule: TopicRule, registry: RegistrySettings) -> pa.Schema:
    """The columns of the newest schema of subject `<topic>-value`; see `ColumnsOf`."""
    schema = latest_schema(topic, registry, SchemaKind.JSON)
    try:
        columns = columns_of_schema(schema)
    except UnusableSchemaError as e:
        raise NoColumnsError([f"topic {topic}: subject {topic}-value: {e}: give the rule a schema"]) from e
    return usable_columns(topic, columns)


def _lacking(schema: RegisteredSchema, batch: ValueBatch) -> pa.Schema:
    return pa.schema(lacking(batch.columns, _fields(schema)))


@lru_cache(maxsize=128)
def _fields(schema: RegisteredSchema) -> pa.Schema:
    """Those that a table can have: it lacks none of the others."""
    try:
        return fields_of_schema(schema)[0]
    except UnusableSchemaError:
        return NO_COLUMNS
