"""Columns of a writer's schema in the columns of a table: by name, missing ones null, narrower ones made wider."""

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa

_WIDER: Mapping[pa.DataType, frozenset[pa.DataType]] = {
    pa.int8(): frozenset((pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())),
    pa.int16(): frozenset((pa.int32(), pa.int64(), pa.float32(), pa.float64())),
    pa.int32(): frozenset((pa.int64(), pa.float64())),
    pa.float32(): frozenset((pa.float64(),)),
}
"""Type -> types that hold all its values exactly."""

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
}


Promotions = Collection[tuple[pa.DataType, pa.DataType]]


def widening_problem(found: pa.DataType, wanted: pa.DataType, where: str, also: Promotions = ()) -> str:
    """Why values of one type do not go into a column of the other; empty: they do.

    `also`: pairs of types that the writer's format itself lets pass.
    """
    exact = found == wanted or wanted in _WIDER.get(found, ()) or _is_wider_decimal(found, wanted)
    if exact or (found, wanted) in also:
        return ""
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        both = [field for field in wanted if found.get_field_index(field.name) >= 0]
        inner = (widening_problem(found.field(f.name).type, f.type, f"{where}.{f.name}", also) for f in both)
    elif pa.types.is_list(found) and pa.types.is_list(wanted):
        inner = (widening_problem(found.value_type, wanted.value_type, f"{where}[]", also) for _ in (0,))
    elif pa.types.is_map(found) and pa.types.is_map(wanted):
        pairs = {"key": (found.key_type, wanted.key_type), "value": (found.item_type, wanted.item_type)}
        inner = (widening_problem(*pair, f"{where}{{{name}}}", also) for name, pair in pairs.items())
    else:
        return (
            f"column {where}: {type_name(found)} in the writer's schema, {type_name(wanted)} in the table: "
            "change the column in the rule, or the producer"
        )
    return next((problem for problem in inner if problem), "")


def type_name(kind: pa.DataType) -> str:
    """The type in the words of `schema`."""
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_struct(kind):
        return "struct<" + ", ".join(f"{field.name}: {type_name(field.type)}" for field in kind) + ">"
    if pa.types.is_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _NAMES.get(kind, str(kind))


def widened(found: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The values in the wanted type, for which there is no `widening_problem`."""
    if found.type == wanted:
        return found
    if pa.types.is_struct(wanted):
        columns = [_part(found, field) for field in wanted]
        return pa.StructArray.from_arrays(columns, fields=list(wanted), mask=found.is_null())
    if pa.types.is_list(wanted) or pa.types.is_map(wanted):
        starts = pa.array(found.offsets.to_numpy() - found.offsets[0].as_py(), pa.int32())
        mask = found.is_null() if found.null_count else None
        if pa.types.is_list(wanted):
            return pa.ListArray.from_arrays(starts, widened(found.flatten(), wanted.value_type), type=wanted, mask=mask)
        first, last = found.offsets[0].as_py(), found.offsets[-1].as_py()
        keys, items = (each[first:last] for each in (found.keys, found.items))
        keys, items = widened(keys, wanted.key_type), widened(items, wanted.item_type)
        return pa.MapArray.from_arrays(starts, keys, items, type=wanted, mask=mask)
    return found.cast(wanted, safe=False)  # nothing overflows; what a format promotes to floats may round


def _part(found: pa.Array, field: pa.Field) -> pa.Array:
    index = found.type.get_field_index(field.name)
    return pa.nulls(len(found), field.type) if index < 0 else widened(found.field(index), field.type)


def _is_wider_decimal(found: pa.DataType, wanted: pa.DataType) -> bool:
    if not pa.types.is_decimal(wanted):
        return False
    before = wanted.precision - wanted.scale
    if pa.types.is_decimal(found):
        return bool(before >= found.precision - found.scale and wanted.scale >= found.scale)
    return bool(before >= _DIGITS.get(found, np.inf))
