"""Columns of a record beside those of its value: key, headers by name, topic's name, fields without a column."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.ingest.formats.parsed import Parsed, Parser, Pieces, ValueBatch
from kgs_core.ingest.formats.texts import NOT_UTF8, is_text
from kgs_core.lake.files.row_schema import RESCUED


def with_rescued(parsed: Parsed, *, wanted: bool) -> Parsed:
    """What a parser gave, with what it rescued as a column, if that is wanted."""
    if not wanted:
        return parsed
    rescued = pa.nulls(parsed.table.num_rows, RESCUED.type) if parsed.rescued is None else parsed.rescued
    return replace(parsed, table=parsed.table.append_column(RESCUED, rescued), rescued=None)


_NULL = b"null"


def parse_keys(parse: Parser, batch: ValueBatch, names: Sequence[str]) -> Parsed:
    """Keys in columns of these names. A record without a key is good: its columns are null."""
    parsed = _with_nulls(parse, batch, batch.values.is_valid())
    bad = {i: f"key: {reason}" for i, reason in parsed.bad.items()}
    waiting = {i: f"key: {reason}" for i, reason in parsed.waiting.items()}
    return Parsed(parsed.table.rename_columns(list(names)), parsed.good, bad, waiting, unknown=parsed.unknown)


def parse_changes(parse: Parser, batch: ValueBatch) -> Parsed:
    """Values of change events. A record without one is a row of nulls; so is JSON's null, which Connect may write."""
    has_value = pc.and_(batch.values.is_valid(), pc.not_equal(batch.values, _NULL).fill_null(False))  # noqa: FBT003
    return parse(batch) if pc.all(has_value).as_py() else _with_nulls(parse, batch, has_value)


def _with_nulls(parse: Parser, batch: ValueBatch, is_there: pa.Array) -> Parsed:
    """What a parser makes of those that are there, and rows of nulls for the others."""
    there = is_there.to_numpy(zero_copy_only=False)
    present, absent = np.flatnonzero(there), np.flatnonzero(~there)
    nulls = pa.Table.from_arrays([pa.nulls(len(absent), f.type) for f in batch.columns], schema=batch.columns)
    pieces = Pieces(batch.columns)
    pieces.take(parse(batch.at(present)), present)
    pieces.take(Parsed(nulls, range(len(absent)), {}), absent)
    return pieces.parsed()


def header_columns(headers: pa.Array, names: Mapping[str, str]) -> Parsed:
    """Column -> the header of this name, as text; of several the last; null where a record has none.

    Bad is a record whose header of this name is not UTF-8.
    """
    of_record = pc.list_parent_indices(headers).to_numpy()
    entries = pc.list_flatten(headers)
    bad: dict[int, str] = {}
    columns = []
    for name in names.values():
        found = np.flatnonzero(pc.equal(entries.field("key"), name).to_numpy(zero_copy_only=False))
        last = np.full(len(headers), -1, np.int64)
        last[of_record[found]] = found  # of several, numpy keeps the last
        values = entries.field("value").take(pa.array(last, pa.int64(), mask=last < 0))
        try:
            columns.append(values.cast(pa.string()))
        except pa.ArrowInvalid:
            odd = [i for i, text in enumerate(values.to_pylist()) if not is_text(text)]
            bad = dict.fromkeys(odd, f"header {name}: {NOT_UTF8}") | bad
            last[odd] = -1
            columns.append(entries.field("value").take(pa.array(last, pa.int64(), mask=last < 0)).cast(pa.string()))
    table = pa.Table.from_arrays(columns, schema=pa.schema([pa.field(name, pa.string()) for name in names]))
    good = [i for i in range(len(headers)) if i not in bad]
    return Parsed(_rows(table, good), good, bad)


def side_by_side(parts: Sequence[Parsed]) -> Parsed:
    """The columns of several parsers of the same records: good is what is good to all, and the first reason counts."""
    if len(parts) == 1:
        return parts[0]
    bad: dict[int, str] = {}
    waiting: dict[int, str] = {}
    unknown: dict[int, float] = {}
    for part in reversed(parts):
        bad |= part.bad
        waiting |= part.waiting
        unknown |= {i: min(for_s, unknown.get(i, for_s)) for i, for_s in part.unknown.items()}
    certain = {i for part in parts for i in part.bad if i not in part.unknown} if unknown else ()
    waiting = {i: reason for i, reason in waiting.items() if i not in bad}
    good = parts[0].good
    if bad or waiting:
        good = [i for i in good if i not in bad and i not in waiting]
    columns, fields = [], []
    for part in parts:
        table = part.table
        if len(part.good) != len(good):
            row_of = {i: row for row, i in enumerate(part.good)}
            table = _rows(table, [row_of[i] for i in good])
        columns += table.columns
        fields += list(table.schema)
    return replace(
        parts[0],
        table=pa.Table.from_arrays(columns, schema=pa.schema(fields)),
        good=good,
        bad=bad,
        waiting=waiting,
        unknown={i: for_s for i, for_s in unknown.items() if i not in certain},
    )


def with_topic(parsed: Parsed, topic: str, columns: Sequence[str]) -> Parsed:
    """With the topic's name in each of these columns."""
    table = parsed.table
    for name in columns:
        table = table.append_column(pa.field(name, pa.string()), pa.repeat(pa.scalar(topic), table.num_rows))
    return replace(parsed, table=table)


def _rows(table: pa.Table, which: Sequence[int]) -> pa.Table:
    return table if len(which) == table.num_rows else table.take(pa.array(which, pa.int64()))
