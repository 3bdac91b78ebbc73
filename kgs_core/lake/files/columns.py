"""Columns of tables and of files: what fits into what, and what a table lacks. Pure.

A file may have fewer columns than its table, structs in it fewer fields, in any order: Delta reads null for what is not
there. So a file fits a table if each of its columns is there with its type, and each other column takes null.
"""

from collections.abc import Iterable

import pyarrow as pa

MAX_DEPTH = 32
"""Types in types: readers of a table's schema give up where its JSON is nested deeper than 128."""
_INVARIANTS = b"delta.invariants"
_ODD = set(" ,;{}()\n\t=")  # Spark reads no column with one of these


def plain(kind: pa.DataType) -> pa.DataType:
    """The type without the names of list items and the views that different readers choose."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("item", plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, plain(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def misfits(wanted: Iterable[pa.Field], there: Iterable[pa.Field], *, inside: str = "") -> list[str]:
    """Why files with the columns `wanted` do not fit a table with those that are `there`; empty: they do.

    `inside`: path of the struct whose fields these are, with its dot.
    """
    found = {f.name: f for f in there}
    problems: list[str] = []
    for field in wanted:
        name = inside + field.name
        if (other := found.pop(field.name, None)) is None:
            problems.append(f"{name} is missing")
        elif fields := _both_structs(field.type, other.type):
            problems += misfits(*fields, inside=f"{name}.")
        elif plain(field.type) != plain(other.type):
            problems.append(f"{name} is {plain(other.type)}, wanted {plain(field.type)}")
    full = [f for f in found.values() if not f.nullable or _INVARIANTS in (f.metadata or {})]
    return problems + [f"{inside}{f.name} is not configured, and takes no null" for f in full]


def _both_structs(one: pa.DataType, other: pa.DataType) -> tuple[list[pa.Field], list[pa.Field]] | None:
    """Fields of the structs that two types are, or are lists of; None where they are something else."""
    while _is_list(one) and _is_list(other):
        one, other = one.value_type, other.value_type
    return (list(one), list(other)) if pa.types.is_struct(one) and pa.types.is_struct(other) else None


def lacking(there: Iterable[pa.Field], wanted: Iterable[pa.Field], *, depth: int = 1) -> list[pa.Field]:
    """What can be added of `wanted`; of a struct that is there, only the fields that it lacks.

    A name that is there already with another type, that differs from one only in case, or that readers of Delta do not
    take, cannot be added; nor can what lies deeper than `MAX_DEPTH`.

    `depth`: of these fields; those of a table have 1.
    """
    found = {f.name: f for f in there}
    taken = {name.lower() for name in found}
    out: list[pa.Field] = []
    for field in wanted:
        if field.name in found:
            part = _lacking_inside(found[field.name].type, field.type, depth)
        elif field.name.lower() in taken or not field.name or _ODD & set(field.name):
            part = None
        else:
            part = _addable(field.type, depth)
        if part is not None:
            taken.add(field.name.lower())
            out.append(pa.field(field.name, part))
    return out


def _lacking_inside(there: pa.DataType, wanted: pa.DataType, depth: int) -> pa.DataType | None:
    if pa.types.is_struct(there) and pa.types.is_struct(wanted):
        fields = lacking(there, wanted, depth=depth + 1)
        return pa.struct(fields) if fields else None
    if _is_list(there) and _is_list(wanted):
        part = _lacking_inside(there.value_type, wanted.value_type, depth + 1)
        return pa.list_(part) if part is not None else None
    return None


def _addable(kind: pa.DataType, depth: int) -> pa.DataType | None:
    """The type, plain, without those of its fields that no table can have; None: nothing is left of it."""
    if depth > MAX_DEPTH:
        return None
    if pa.types.is_struct(kind):
        fields = lacking([], kind, depth=depth + 1)
        return pa.struct(fields) if fields else None
    if pa.types.is_map(kind):
        key, item = (_addable(each, depth + 1) for each in (kind.key_type, kind.item_type))
        return pa.map_(key, item) if key is not None and item is not None else None
    if _is_list(kind):
        item = _addable(kind.value_type, depth + 1)
        return pa.list_(item) if item is not None else None
    return plain(kind)


def widened(columns: Iterable[pa.Field]) -> pa.Schema:
    """The columns with the widest type of their kind: whole numbers as long, others as double, nested ones too."""
    return pa.schema([pa.field(f.name, _wide(f.type), f.nullable) for f in columns])


def _wide(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _wide(f.type), f.nullable) for f in kind])
    if _is_list(kind):
        return pa.list_(_wide(kind.value_type))
    if pa.types.is_signed_integer(kind):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(kind) else kind


def as_wide_as_there(wanted: Iterable[pa.Field], there: Iterable[pa.Field]) -> pa.Schema:
    """`wanted`, but for a number that is there with another width: that keeps the width that it has."""
    return pa.schema(_as_there(wanted, there))


def _as_there(wanted: Iterable[pa.Field], there: Iterable[pa.Field]) -> list[pa.Field]:
    found = {f.name: f.type for f in there}
    return [pa.field(f.name, _kind_as_there(f.type, found.get(f.name, f.type))) for f in wanted]


def _kind_as_there(wanted: pa.DataType, there: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(wanted) and pa.types.is_struct(there):
        return pa.struct(_as_there(wanted, there))
    if _is_list(wanted) and _is_list(there):
        return pa.list_(_kind_as_there(wanted.value_type, there.value_type))
    return there if _wide(there) == _wide(wanted) else wanted


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
