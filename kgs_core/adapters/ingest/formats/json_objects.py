"""JSON objects to typed columns."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from kgs_core.adapters.ingest.formats.json_faults import WHITE, JsonFaults
from kgs_core.adapters.ingest.formats.parsed import MAX_REASON, Parsed, ValueBatch

_SINGLE = 1
_OPEN, _CLOSE = b"{}"
_READ_AS = {
    pa.date32(): pa.string(),  # else a number of days is wanted and "2026-01-31" refused
    pa.float32(): pa.float64(),  # else a number that is too big becomes infinity without a word
}


def parse_json(batch: ValueBatch) -> Parsed:
    """One JSON object a value to columns; missing fields are null, unknown ones ignored.

    All values are parsed at once. Where that fails, each is looked at for faults on its own, which takes some
    microseconds, and the others are parsed at once. Halving down to the bad one, some hundred microseconds each, is
    left for values that only pyarrow can judge: those nested so deep that none of them is small.
    """
    values, schema = batch.values, batch.columns
    bad = {i: reason for i in _odd_ends(values) if (reason := _shape_problem(values[i].as_py())) is not None}
    candidates: Sequence[int] = [i for i in range(len(values)) if i not in bad] if bad else range(len(values))
    table = _attempt(values, candidates, schema)
    faults = JsonFaults(schema)
    for thorough in (False, True):
        if table is not None:
            break
        texts = zip(candidates, _chosen(values, candidates).to_pylist(), strict=True)
        found = {i: reason for i, text in texts if (reason := faults.fault(text, thorough=thorough))}
        if found:
            bad |= found
            candidates = [i for i in candidates if i not in found]
            table = _attempt(values, candidates, schema)
    if table is None:
        table, candidates = _halved(values, candidates, schema, bad)
    return Parsed(table, candidates, bad)


def _attempt(values: pa.Array, indices: Sequence[int], schema: pa.Schema) -> pa.Table | None:
    """These values in columns; None where one of them is bad."""
    if not indices:
        return schema.empty_table()
    try:
        return _parse(_chosen(values, indices), schema)
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
    stack = [candidates]
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


def _parse(values: pa.Array, schema: pa.Schema) -> pa.Table:
    # One buffer of all, each in a line, made without an object for each.
    data = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values), b"\n")[
        0
    ].as_buffer()
    read = pa.schema([(f.name, _READ_AS.get(f.type, f.type)) for f in schema])
    table = pyarrow.json.read_json(
        pa.BufferReader(data),
        pyarrow.json.ReadOptions(use_threads=False, block_size=data.size + 1),
        pyarrow.json.ParseOptions(explicit_schema=read, unexpected_field_behavior="ignore", newlines_in_values=True),
    )
    if table.num_rows != len(values):  # "{}{}" in one value
        raise pa.ArrowInvalid("more than one JSON object in one value")
    table.validate(full=True)  # strings that are not UTF-8
    out = table.select(schema.names).cast(schema)
    for name, kind in zip(schema.names, schema.types, strict=True):
        if kind == pa.float32() and _infinities(out[name]) != _infinities(table[name]):
            raise pa.ArrowInvalid(f"Column(/{name}): number too big to be stored in float")
    return out


def _infinities(column: pa.ChunkedArray) -> int:
    return pc.sum(pc.is_inf(column)).as_py() or 0


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()).replace(" in row 0", "")
    return text[:MAX_REASON]
