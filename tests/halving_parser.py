"""The slow parser: pyarrow alone says what is bad, by halving. What the quick one is held against."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

MAX_REASON = 300
_SINGLE = 1
_READ_AS = {
    pa.date32(): pa.string(),  # else a number of days is wanted and "2026-01-31" refused
    pa.float32(): pa.float64(),  # else a number that is too big becomes infinity without a word
}
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
    """One JSON object a value to the columns of `schema`; missing fields are null, unknown ones ignored.

    All values are parsed at once; where that fails, each half on its own, down to the bad records. So a batch with
    k bad records of n costs about k log n parses, and one without any costs one.
    """
    bad: dict[int, str] = {}
    candidates = []
    for i, value in enumerate(values):
        reason = _shape_problem(value)
        if reason is None:
            candidates.append(i)
        else:
            bad[i] = reason
    tables: list[pa.Table] = []
    good: list[int] = []
    stack = [candidates] if candidates else []
    while stack:
        indices = stack.pop()
        try:
            tables.append(_parse([values[i] or b"" for i in indices], schema))
            good += indices
        except (pa.ArrowInvalid, UnicodeDecodeError) as e:
            if len(indices) == _SINGLE:
                bad[indices[0]] = _one_line(e)
            else:
                middle = len(indices) // 2
                stack += [indices[middle:], indices[:middle]]  # the first half is parsed first: order is kept
    return Parsed(pa.concat_tables(tables) if tables else schema.empty_table(), good, bad)


def _shape_problem(value: bytes | None) -> str | None:
    """Why a value cannot be one JSON object, by its ends alone.

    It also keeps pyarrow's reader safe: a document `null` ends the process with a segmentation fault, and since
    every value begins with { and ends with }, none of them can flow over into its neighbour: an unfinished object
    would have to go on with {, which JSON allows after neither a } nor a raw line break inside a string.
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


def _parse(values: list[bytes], schema: pa.Schema) -> pa.Table:
    data = b"\n".join(values)
    read = pa.schema([(f.name, _READ_AS.get(f.type, f.type)) for f in schema])
    table = pyarrow.json.read_json(
        io.BytesIO(data),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
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
