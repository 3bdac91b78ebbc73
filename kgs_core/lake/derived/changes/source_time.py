"""When a change was made, as its producer says it."""

import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.lake.derived.changes.debezium import unwrapped
from kgs_core.lake.derived.changes.events import field_of
from kgs_core.lake.derived.changes.types import as_type
from kgs_core.lake.files.row_schema import TIMESTAMP

_COLUMNS = {"debezium": ("__source_ts_ms", 1), "maxwell": ("ts", 1000), "canal": ("es", 1)}
"""Producer -> column with the time of a record's changes, and how many ms its unit is; Debezium's envelopes have it as
`source.ts_ms`."""


def times_of(values: pa.Table, producer: str) -> pa.Array:
    """Time of each record; null where no column tells it."""
    name, ms = _COLUMNS[producer]
    values = unwrapped(values) if producer == "debezium" else values
    if name in values.column_names:
        found = values[name].combine_chunks()
    elif producer == "debezium" and pa.types.is_struct(_type_of(values, "source")):
        name = "source.ts_ms"
        found = field_of(values["source"].combine_chunks(), "ts_ms", pa.int64())
    else:
        return pa.nulls(values.num_rows, TIMESTAMP)
    if pa.types.is_timestamp(found.type):
        return found.cast(TIMESTAMP)
    return as_type(name, pc.multiply(found.cast(pa.int64()), ms), "timestamp_ms")


def _type_of(values: pa.Table, name: str) -> pa.DataType:
    return values.schema.field(name).type if name in values.column_names else pa.null()
