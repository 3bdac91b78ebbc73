"""Columns as pyarrow's JSON reader can read them, and what is made of them then.

The reader takes structs, lists and most plain types as they are. Others it misreads or refuses; they are read as
something else, at any depth, and made into what is wanted afterwards.
"""

import binascii

import pyarrow as pa
import pyarrow.compute as pc

ENTRY = ("key", "value")
_WIDE = 76  # digits; a decimal may be written with more than its column keeps, as 1.500
_READ_AS = {
    pa.date32(): pa.string(),  # else a number of days is wanted and "2026-01-31" refused
    pa.float32(): pa.float64(),  # else a number that is too big becomes infinity without a word
    pa.binary(): pa.string(),  # base64
}


def read_type(kind: pa.DataType) -> pa.DataType:
    """What a column of this type is read as; a map as a list of its entries, see `json_text.entries_of_maps`."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, read_type(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.list_(pa.struct(list(zip(ENTRY, map(read_type, (kind.key_type, kind.item_type)), strict=True))))
    if pa.types.is_list(kind):
        return pa.list_(read_type(kind.value_type))
    if pa.types.is_decimal(kind):
        return pa.decimal256(_WIDE, kind.scale)
    return _READ_AS.get(kind, kind)


def column_of(read: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column that one read as `read_type(kind)` becomes.

    Raises:
        ArrowInvalid: a value does not fit.
    """
    if read.type == kind:
        return read
    if pa.types.is_struct(kind):
        children = [column_of(read.field(i), kind.field(i).type) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=read.is_null())
    if pa.types.is_map(kind):
        keys, items = read.values.field(0), column_of(read.values.field(1), kind.item_type)
        return pa.MapArray.from_arrays(read.offsets, keys, items, kind, mask=read.is_null())
    if pa.types.is_list(kind):
        items = column_of(read.values, kind.value_type)
        return pa.ListArray.from_arrays(read.offsets, items, kind, mask=read.is_null())
    if pa.types.is_binary(kind):
        return pa.array([None if text is None else bytes_of(text) for text in read.to_pylist()], kind)
    out = read.cast(kind)
    if pa.types.is_float32(kind) and _infinities(out) != _infinities(read):
        raise pa.ArrowInvalid("number too big to be stored in float")
    return out


def bytes_of(text: str) -> bytes:
    """The bytes that a text is the base64 of.

    Raises:
        ArrowInvalid: it is not base64 with its padding.
    """
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as e:
        raise pa.ArrowInvalid("not base64") from e


def _infinities(column: pa.Array) -> int:
    return pc.sum(pc.is_inf(column)).as_py() or 0
