"""Columns of an Avro schema's fields, of what polars reads; all by Arrow, nothing can fail by a value."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.ingest.formats.avro.avro_schema import AvroField

PROMOTIONS = frozenset(
    ((pa.int32(), pa.float32()), (pa.int64(), pa.float32()), (pa.int64(), pa.float64()), (pa.string(), pa.binary()))
)
"""Avro's own, from the writer's type to the column's, beside those that keep every value."""
_DECIMAL_BYTES = 16


def column_of(part: AvroField, found: pa.Array) -> pa.Array:
    """The column of a field, of its own type."""
    match part.kind:
        case "record":
            children = [column_of(inner, _child(found, name)) for name, inner in part.parts]
            return pa.StructArray.from_arrays(children, fields=list(part.arrow), mask=_nulls(found))
        case "array":
            items = column_of(part.parts[0][1], found.flatten())
            return pa.ListArray.from_arrays(_offsets(found), items, type=part.arrow, mask=_nulls(found))
        case "map":
            entries = found.flatten()
            values = column_of(part.parts[0][1], _child(entries, "value"))
            keys = _child(entries, "key").cast(pa.string())
            return pa.MapArray.from_arrays(_offsets(found), keys, values, type=part.arrow, mask=_nulls(found))
        case "enum":
            made = pa.array(part.symbols, pa.string()).take(found)
        case "timestamp":
            made = _micros(found, part.factor).view(part.arrow)
        case "date":
            made = found.view(part.arrow)
        case "decimal":
            made = _decimals(found, part.arrow)
        case _:
            made = found.cast(part.arrow)
    return made


def _child(found: pa.Array, name: str) -> pa.Array:
    """Of a struct, by its place in the array, without what its nulls say of it."""
    return found.field(name) if not found.null_count else pc.struct_field(found, name)


def _nulls(found: pa.Array) -> pa.Array | None:
    return found.is_null() if found.null_count else None


def _offsets(found: pa.Array) -> pa.Array:
    """Where the items of each list begin in `found.flatten()`, which has none of a null."""
    lengths = pc.list_value_length(found).fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def _micros(found: pa.Array, factor: int) -> pa.Array:
    if factor > 0:
        return found if factor == 1 else pc.multiply(found, factor)
    micros = np.floor_divide(found.fill_null(0).to_numpy(zero_copy_only=False), -factor)
    return pa.array(micros, pa.int64(), mask=found.is_null().to_numpy(zero_copy_only=False))


def _decimals(found: pa.Array, kind: pa.DataType) -> pa.Array:
    """Two's complement, the highest byte first and as many as there are, to 16 bytes, the lowest first."""
    if not pa.types.is_large_binary(found.type):
        found = found.cast(pa.large_binary())
    _, offsets, data = found.buffers()
    ends = np.frombuffer(offsets, np.int64)[found.offset : found.offset + len(found) + 1]
    of = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    starts, lengths = ends[:-1], np.diff(ends)
    negative = (lengths > 0) & (of[np.minimum(starts, len(of) - 1)] > 127)  # noqa: PLR2004 - the sign's bit
    out = np.where(negative, np.uint8(255), np.uint8(0))[:, None].repeat(_DECIMAL_BYTES, axis=1)
    for k in range(_DECIMAL_BYTES):
        has = lengths > k
        out[has, k] = of[ends[1:][has] - 1 - k]
    valid = found.is_valid()
    bits = None if not found.null_count else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(kind, len(found), [bits, pa.py_buffer(out.tobytes())])
