"""Columns of an Avro schema's fields, made into those that a table has; all by Arrow, nothing can fail by a value."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.adapters.ingest.formats.avro_schema import AvroField, AvroReading

_WIDER = {
    (pa.int32(), pa.int64()),
    (pa.int32(), pa.float32()),
    (pa.int32(), pa.float64()),
    (pa.int64(), pa.float32()),
    (pa.int64(), pa.float64()),
    (pa.float32(), pa.float64()),
    (pa.string(), pa.binary()),
}
"""Promotions of Avro's own, from the writer's type to the column's."""
_DECIMAL_BYTES = 16


def misfit(reading: AvroReading, columns: pa.Schema) -> str:
    """Why values of a schema cannot be these columns; empty: they can."""
    known = dict(reading.fields)
    for each in columns:
        if each.name in known and (problem := _misfit(known[each.name], each.type)):
            return f"column {each.name}: {problem}"
    return ""


def _misfit(part: AvroField, wanted: pa.DataType) -> str:
    if part.arrow == wanted or (part.arrow, wanted) in _WIDER:
        return ""
    if part.kind == "record" and pa.types.is_struct(wanted):
        inner = dict(part.parts)
        found = [(f.name, _misfit(inner[f.name], f.type)) for f in wanted if f.name in inner]
        return next((f"{name}: {problem}" for name, problem in found if problem), "")
    if part.kind == "array" and pa.types.is_list(wanted):
        return _misfit(part.parts[0][1], wanted.value_type)
    if part.kind == "map" and pa.types.is_map(wanted) and wanted.key_type == pa.string():
        return _misfit(part.parts[0][1], wanted.item_type)
    if part.kind == "decimal" and pa.types.is_decimal128(wanted):
        room = wanted.precision - wanted.scale >= part.arrow.precision - part.arrow.scale
        if room and wanted.scale >= part.arrow.scale:
            return ""
    return (
        f"the writer's schema has {part.arrow}, the column is {wanted}: change the column in the rule, or the producer"
    )


def fit(part: AvroField, found: pa.Array, wanted: pa.DataType) -> pa.Array:
    """What polars read of a field, as the column's type, which it does not misfit."""
    match part.kind:
        case "record":
            return _struct(part, found, wanted)
        case "array":
            items = fit(part.parts[0][1], found.flatten(), wanted.value_type)
            return pa.ListArray.from_arrays(_offsets(found), items, type=wanted, mask=_nulls(found))
        case "map":
            entries = found.flatten()
            values = fit(part.parts[0][1], _child(entries, "value"), wanted.item_type)
            keys = _child(entries, "key").cast(pa.string())
            return pa.MapArray.from_arrays(_offsets(found), keys, values, type=wanted, mask=_nulls(found))
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
    return made if made.type == wanted else made.cast(wanted, safe=False)  # a wider type; floats may round


def _struct(part: AvroField, found: pa.Array, wanted: pa.DataType) -> pa.Array:
    inner = dict(part.parts)
    children = [
        fit(inner[f.name], _child(found, f.name), f.type) if f.name in inner else pa.nulls(len(found), f.type)
        for f in wanted
    ]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=_nulls(found))


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
