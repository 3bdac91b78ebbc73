"""JSON objects whose schema a registry has, to columns."""

from dataclasses import replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.ingest.formats.by_schema import newest_columns, parse_by_schema
from kgs_core.ingest.formats.json.json_objects import parse_json
from kgs_core.ingest.formats.json.json_schema_types import columns_of_schema, fields_of_schema
from kgs_core.ingest.formats.parsed import NO_COLUMNS, Parsed, Pieces, UnusableSchemaError, ValueBatch
from kgs_core.ports.registry import RegisteredSchema, SchemaKind
from kgs_core.registry.wire_format import FramedValues, SchemaGroup, byte_ranges

_END = 2**31 - 1


def parse_json_schema(batch: ValueBatch) -> Parsed:
    """JSON objects behind the frame of a registry to columns, as `parse_json` makes them.

    A value is judged by its columns alone. Its schema says which others there could be, and no more: what it demands
    (`required`, `minimum`, `pattern`) is not looked at.
    """
    begins = byte_ranges(batch.values)[1]

    def decode(schema: RegisteredSchema, group: SchemaGroup, _framed: FramedValues, pieces: Pieces) -> None:
        chosen = batch.at(group.positions)
        frame = int(group.starts[0] - begins[group.positions[0]])
        # With an end, which pyarrow takes ill if it is left out
        values = pc.binary_slice(chosen.values, frame, stop=_END)
        pieces.take(parse_json(replace(chosen, values=values)), group.positions, _fields(schema))

    return parse_by_schema(batch, SchemaKind.JSON, decode)


def columns_of(topic: str, _rule: TopicRule, registry: RegistrySettings) -> pa.Schema:
    """The columns of the newest schema of subject `<topic>-value`; see `ColumnsOf`."""
    return newest_columns(topic, registry, SchemaKind.JSON, columns_of_schema)


@lru_cache(maxsize=128)
def _fields(schema: RegisteredSchema) -> pa.Schema:
    """Those that a table can have: it lacks none of the others."""
    try:
        return fields_of_schema(schema)[0]
    except UnusableSchemaError:
        return NO_COLUMNS
