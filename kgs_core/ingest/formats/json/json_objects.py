"""JSON objects to typed columns."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from kgs_core.ingest.formats.json import json_text
from kgs_core.ingest.formats.json.json_columns import column_of, read_type
from kgs_core.ingest.formats.json.json_faults import WHITE, JsonFaults
from kgs_core.ingest.formats.json.json_scanner import Scanned, scan_json
from kgs_core.ingest.formats.parsed import MAX_REASON, Parsed, ValueBatch

_SINGLE = 1
_OPEN, _CLOSE = b"{}"


def parse_json(batch: ValueBatch) -> Parsed:
    """One JSON object a value to columns; missing fields are null, unknown ones ignored or rescued.

    What the compiled scan is sure of, it takes; pyarrow's reader has the others (docs/adr/0026).
    """
    scanned = scan_json(batch.values, batch.columns, takes_unknown=not batch.rescue)
    if scanned is None:
        return parse_by_pyarrow(batch)
    table, left = scanned.table, scanned.left
    if not len(left):
        rescued = pa.nulls(table.num_rows, pa.string()) if batch.rescue else None
        return Parsed(table, range(table.num_rows), {}, rescued=rescued)
    others = parse_by_pyarrow(replace(batch, values=batch.values.take(pa.array(left)), headers=None))
    return _together(scanned, others)


def _together(scanned: Scanned, others: Parsed) -> Parsed:
    """What was scanned, and what the other parser made of the values that were left, in the order of the values."""
    count, left = scanned.table.num_rows, scanned.left
    row = np.arange(count)  # of both tables, one behind the other
    row[left] = -1
    row[left[np.array(others.good, np.int64)]] = count + np.arange(others.table.num_rows)
    good = np.flatnonzero(row >= 0)
    rows = pa.array(row[good])
    rescued = None
    if others.rescued is not None:
        rescued = pa.concat_arrays([pa.nulls(count, pa.string()), others.rescued]).take(rows)
    return Parsed(
        pa.concat_tables([scanned.table, others.table]).take(rows),
        good.tolist(),
        {int(left[i]): reason for i, reason in others.bad.items()},
        rescued=rescued,
    )


def parse_by_pyarrow(batch: ValueBatch) -> Parsed:
    """As `parse_json`, without the scan.

    All values are parsed at once. Where that fails, each is looked at for faults on its own, which takes some
    microseconds, and the others are parsed at once. Halving down to the bad one, some hundred microseconds each, is
    left for values that only pyarrow can judge: those nested so deep that none of them is small.

    Only where there are maps, or unknown fields to be rescued, are all of them also taken apart in Python.
    """
    values, schema = batch.values, batch.columns
    bad = {i: reason for i in _odd_ends(values) if (reason := _shape_problem(values[i].as_py())) is not None}
    candidates: Sequence[int] = [i for i in range(len(values)) if i not in bad] if bad else range(len(values))
    if any(json_text.has_map(kind) for kind in schema.types):
        read, of_maps = _without_maps(values, candidates, schema)
        bad |= of_maps
        candidates = [i for i in candidates if i not in of_maps]
    else:
        read = values
    if batch.rescue:
        if (table := _attempt(read, candidates, schema, "error")) is not None:
            return Parsed(table, candidates, bad, rescued=pa.nulls(table.num_rows, pa.string()))
        bad |= {i: json_text.TOO_DEEP for i in candidates if json_text.is_too_deep(values[i].as_py())}
        candidates = [i for i in candidates if i not in bad]
    parsed = _parsed(values, read, candidates, schema, bad)
    return replace(parsed, rescued=_rescued(values, parsed.good, schema)) if batch.rescue else parsed


def _parsed(
    values: pa.Array, read: pa.Array, candidates: Sequence[int], schema: pa.Schema, bad: dict[int, str]
) -> Parsed:
    """These candidates in columns, of `values` as `read` has them for pyarrow."""
    if (table := _attempt(read, candidates, schema)) is not None:
        return Parsed(table, candidates, bad)
    faults = JsonFaults(schema)
    texts = zip(candidates, _chosen(values, candidates).to_pylist(), strict=True)
    bad |= {i: reason for i, text in texts if (reason := faults.fault(text))}
    table, candidates = _halved(read, [i for i in candidates if i not in bad], schema, bad)
    return Parsed(table, candidates, bad)


def _without_maps(values: pa.Array, candidates: Sequence[int], schema: pa.Schema) -> tuple[pa.Array, dict[int, str]]:
    """The values with their maps as pyarrow can read them, and why those are bad for which that cannot be."""
    shape, faults = json_text.shape_of(schema), JsonFaults(schema)
    out: list[bytes | None] = [None] * len(values)
    bad = {}
    for i, value in zip(candidates, _chosen(values, candidates).to_pylist(), strict=True):
        if json_text.is_too_deep(value):
            bad[i] = json_text.TOO_DEEP
            continue
        try:
            out[i] = json_text.entries_of_maps(value, shape)
        except UnicodeDecodeError:
            bad[i] = "not UTF-8"
        except ValueError as e:
            bad[i] = faults.fault(value) or _one_line(e)
    return pa.array(out, pa.binary()), bad


def _rescued(values: pa.Array, good: Sequence[int], schema: pa.Schema) -> pa.Array:
    shape = json_text.shape_of(schema)
    return pa.array([json_text.rescued(value, shape) for value in _chosen(values, good).to_pylist()], pa.string())


def _attempt(
    values: pa.Array, indices: Sequence[int], schema: pa.Schema, unknown_fields: Literal["ignore", "error"] = "ignore"
) -> pa.Table | None:
    """These values in columns; None where one of them is bad."""
    if not indices:
        return schema.empty_table()
    try:
        return _parse(_chosen(values, indices), schema, unknown_fields)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None


def _chosen(values: pa.Array, indices: Sequence[int]) -> pa.Array:
    return values if len(indices) == len(values) else values.take(pa.array(indices, pa.int64()))


def _halved(
    values: pa.Array, candidates: Sequence[int], schema: pa.Schema, bad: dict[int, str]
) -> tuple[pa.Table, list[int]]:
    """The good ones of these values in columns, and which they are; why the others are not is added to `bad`."""
    tables: list[pa.Table] = [schema.empty_table()]
    good: list[int] = []
    stack = [candidates] if candidates else []
    while stack:
        indices = stack.pop()
        try:
            tables.append(_parse(_chosen(values, indices), schema))
            good += indices
        except (pa.ArrowInvalid, UnicodeDecodeError) as e:
            if len(indices) == _SINGLE:
                bad[indices[0]] = _one_line(e)
            else:
                middle = len(indices) // 2
                stack += [indices[middle:], indices[:middle]]  # the first half is parsed first: order is kept
    return pa.concat_tables(tables), good


def _odd_ends(values: pa.Array) -> list[int]:
    """Those that do not begin with { and end with }, and so are to be looked at on their own."""
    if not len(values):
        return []
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    if data is None or not len(data):
        return list(range(len(values)))
    of = np.frombuffer(data, np.uint8)
    first, last = np.minimum(ends[:-1], len(of) - 1), np.maximum(ends[1:] - 1, 0)
    plain = (ends[:-1] < ends[1:]) & (of[first] == _OPEN) & (of[last] == _CLOSE)
    if values.null_count:
        plain &= values.is_valid().to_numpy(zero_copy_only=False)
    found: list[int] = np.flatnonzero(~plain).tolist()
    return found


def _shape_problem(value: bytes | None) -> str | None:
    """Why a value cannot be one JSON object, by its ends alone.

    It also keeps pyarrow's reader safe: a document `null` ends the process with a segmentation fault, and since
    every value begins with { and ends with }, none of them can flow over into its neighbour: an unfinished object
    would have to go on with {, which JSON allows after neither a } nor a raw line break inside a string.
    """
    if value is None:
        return "no value (tombstone)"
    bare = value.strip(WHITE)
    if not bare:
        return "empty value"
    if not (bare.startswith(b"{") and bare.endswith(b"}")):
        return "not a JSON object"
    return None


def _parse(values: pa.Array, schema: pa.Schema, unknown_fields: Literal["ignore", "error"] = "ignore") -> pa.Table:
    # One buffer of all, each in a line, made without an object for each.
    data = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values), b"\n")[
        0
    ].as_buffer()
    read = pa.schema([(f.name, read_type(f.type)) for f in schema])
    table = pyarrow.json.read_json(
        pa.BufferReader(data),
        pyarrow.json.ReadOptions(use_threads=False, block_size=data.size + 1),
        pyarrow.json.ParseOptions(
            explicit_schema=read, unexpected_field_behavior=unknown_fields, newlines_in_values=True
        ),
    )
    if table.num_rows != len(values):  # "{}{}" in one value
        raise pa.ArrowInvalid("more than one JSON object in one value")
    table.validate(full=True)  # strings that are not UTF-8
    columns = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        try:
            columns.append(column_of(table[name].combine_chunks(), kind))
        except pa.ArrowInvalid as e:
            raise pa.ArrowInvalid(f"Column(/{name}): {e}") from e
    return pa.Table.from_arrays(columns, schema=schema)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()).replace(" in row 0", "")
    return text[:MAX_REASON]
