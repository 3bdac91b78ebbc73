"""The slow parser: pyarrow alone says of each value whether it is bad. What the quick one is held against."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.json

from kgs_core.ingest.formats.json.json_columns import column_of, read_type
from kgs_core.ingest.formats.json.json_faults import JsonFaults
from kgs_core.ingest.formats.json.json_text import entries_of_maps, has_map, is_too_deep, shape_of
from kgs_core.lake.files.row_schema import TIMESTAMP

MAX_REASON = 300
_WHITE = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Parsed:
    """Columns of the good values, and why the others are bad.

    Attributes:
        table: one row a good value, in order.
        good: positions (in the input) of the rows.
        bad: position -> reason.
    """

    table: pa.Table
    good: list[int]
    bad: dict[int, str]


def parse_json(values: Sequence[bytes | None], schema: pa.Schema) -> Parsed:
    """One JSON object a value to the columns of `schema`; missing fields are null, unknown ones ignored."""
    tables, good, bad = [schema.empty_table()], [], {}
    for i, value in enumerate(values):
        reason = _shape_problem(value)
        if reason is None:
            value, reason = _without_maps(value, schema)  # noqa: PLW2901 - as pyarrow reads it
        if reason is None:
            try:
                tables.append(_parse(value, schema))
                good.append(i)
            except (pa.ArrowInvalid, UnicodeDecodeError) as e:
                reason = _one_line(e)
        if reason is not None:
            bad[i] = reason
    return Parsed(pa.concat_tables(tables), good, bad)


def _without_maps(value: bytes, schema: pa.Schema) -> tuple[bytes, str | None]:
    if not any(map(has_map, schema.types)):
        return value, None
    if is_too_deep(value):
        return value, "too deep"
    try:
        return entries_of_maps(value, shape_of(schema)), None
    except ValueError as e:
        return value, repr(e)


def _shape_problem(value: bytes | None) -> str | None:
    """Why a value cannot be one JSON object, by its ends alone.

    It also keeps pyarrow's reader safe: a document `null` ends the process with a segmentation fault.
    """
    if value is None:
        return "no value (tombstone)"
    if value[:1] == b"{" and value[-1:] == b"}":  # nearly always, and without a copy
        return None
    bare = value.strip(_WHITE)
    if not bare:
        return "empty value"
    if not (bare.startswith(b"{") and bare.endswith(b"}")):
        return "not a JSON object"
    return None


def _parse(value: bytes, schema: pa.Schema) -> pa.Table:
    read = pa.schema([(f.name, read_type(f.type)) for f in schema])
    table = pyarrow.json.read_json(
        io.BytesIO(value),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(value) + 1),
        pyarrow.json.ParseOptions(explicit_schema=read, unexpected_field_behavior="ignore", newlines_in_values=True),
    )
    if table.num_rows != 1:  # "{}{}" in one value
        raise pa.ArrowInvalid("more than one JSON object in one value")
    table.validate(full=True)  # strings that are not UTF-8
    columns = [column_of(table[field.name].combine_chunks(), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()).replace(" in row 0", "")
    return text[:MAX_REASON]


def assert_judged_as_by_pyarrow_alone(values: list[bytes], schema: pa.Schema, parse: Callable[..., Any]) -> None:
    """Whether `parse` finds good what the slow parser does, and gives the same, together and one by one."""
    quick, slow = parse(values, schema), parse_json(values, schema)
    assert list(quick.good) == slow.good
    assert quick.bad.keys() == slow.bad.keys()
    assert repr(plain(quick.table)) == repr(plain(slow.table))  # NaN is not itself
    faults = JsonFaults(schema)
    for i in slow.good:  # else it would depend on its neighbours whether it is looked at
        assert faults.fault(values[i]) is None
    alone = [parse([value], schema) for value in values]
    assert quick.bad == {i: one.bad[0] for i, one in enumerate(alone) if one.bad}
    assert repr(plain(quick.table)) == repr([row for one in alone for row in plain(one.table)])


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with times as numbers: pyarrow has years that Python has not."""
    return table.cast(pa.schema([(f.name, timeless(f.type)) for f in table.schema])).to_pylist()


def timeless(kind: pa.DataType) -> pa.DataType:
    """The type with numbers for times."""
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, timeless(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, timeless(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(timeless(kind.value_type))
    return {pa.date32(): pa.int32(), TIMESTAMP: pa.int64()}.get(kind, kind)
