"""One Parquet file of a batch, and Delta's statistics of it."""

import json
import math
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kgs_core.errors import TransientError
from kgs_core.lake.files.layout import folder_of
from kgs_core.lake.files.storage import Storage
from kgs_core.ports import FileWritten

FILE_ENDING = ".snappy.parquet"
"""Of the files of batches. Those that compaction makes of them have another."""
MAX_STRING_STATISTIC = 32
DICTIONARY_BYTES = 16_384
"""Where a column's dictionary is given up: one that has outgrown this has mostly values that never come again, and
looking each up took half the time of the file; files of batches are hardly ever larger for it."""

_NOT_PARTITIONED: Mapping[str, str | None] = {}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # in a second
_LAST_CHARACTER = "\U0010ffff"


def write_table(
    storage: Storage,
    table_name: str,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    partition_values: Mapping[str, str | None] = _NOT_PARTITIONED,
    beside: str = "",
) -> FileWritten:
    """Write one file into the table's folder; it is not part of the table until a commit names it.

    Args:
        partition_values: of all its rows, in Delta's form; the file has no such column.
        beside: see `Storage.make_folders`, for a table that may have to be created yet.

    Raises:
        TransientError: the disk or the store did not take it.
    """
    folder = folder_of(partition_values)
    name = "/".join(part for part in (folder, f"part-{uuid.uuid4()}{FILE_ENDING}") if part)
    filesystem, path = storage.filesystem(), storage.path(table_name, name)
    try:
        storage.make_folders(table_name, folder, beside)
        file = _write(filesystem, path, name, batches, schema)
        storage.flush(table_name, name)
        return replace(file, partition_values=dict(partition_values)) if partition_values else file
    except Exception as e:
        root = _os_error_of(e)
        if root is None or not storage.is_in_objects:  # a store that does not answer takes as long again for this
            with suppress(Exception):  # no commit has named it; where it stays, vacuum takes it
                filesystem.delete_file(path)
        storage.forget_connections()
        if root is None:
            raise
        raise TransientError(f"table {table_name}: cannot write {name}: {root}") from e


def _write(filesystem: Any, path: str, name: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> FileWritten:
    collected: list[Any] = []
    with_nan: set[str] = set()
    floats = [f.name for f in schema if pa.types.is_floating(f.type)]
    dictionary = [f.name for f in schema if not (pa.types.is_binary(f.type) or pa.types.is_nested(f.type))]
    with filesystem.open_output_stream(path) as sink:
        writer = pq.ParquetWriter(
            sink,
            schema,
            compression="snappy",
            use_dictionary=dictionary,
            dictionary_pagesize_limit=DICTIONARY_BYTES,
            metadata_collector=collected,
        )
        try:
            for batch in batches:
                writer.write_batch(batch)
                with_nan |= {name for name in floats if pc.any(pc.is_nan(batch[name])).as_py()}
            writer.close()
        except BaseException:
            writer.is_open = False  # else it tries again to write its footer, and hides why
            raise
        size = sink.tell()
    metadata = collected[0]
    return FileWritten(name, size, metadata.num_rows, statistics(metadata, schema, with_nan))


def _os_error_of(error: BaseException | None) -> OSError | None:
    """The failure of disk or store behind an error: a writer that fails at its footer complains of that instead."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


def statistics(metadata: Any, schema: pa.Schema, with_nan: Collection[str] = ()) -> str:
    """Delta's statistics of a file as JSON text, from the Parquet footer.

    Minima never lie above and maxima never below a value of the file: times are rounded outwards to ms, texts cut.
    Either every column has bounds (but for bytes, lists, maps and columns of nulls), or none: where one is left out
    beside others, deltalake's pyarrow reader compares it with null and passes over the file. A struct is an object of
    its fields' bounds, if only an empty one, for the same reason; what is missing in it is compared with nothing.

    `with_nan`: columns with NaN. Parquet leaves it out of the bounds, and readers hold it to be the greatest number.
    """
    low, high, nulls = (_structs(schema) for _ in range(3))
    all_bounded = not with_nan
    for index, path, kind in _columns_with_bounds(schema) if metadata.num_row_groups else ():
        groups = [metadata.row_group(g).column(index).statistics for g in range(metadata.num_row_groups)]
        if any(g is None or not g.has_null_count for g in groups):
            all_bounded &= len(path) > 1
            continue
        null_count = sum(g.null_count for g in groups)
        _put(nulls, path, null_count)
        if null_count < metadata.num_rows:
            filled = [g for g in groups if g.num_values]
            bounds = _bounds(filled, kind) if all(g.has_min_max for g in filled) else (None, None)
            if None not in bounds:
                _put(low, path, bounds[0])
                _put(high, path, bounds[1])
            else:
                all_bounded &= len(path) > 1
    of_values = f'"minValues": {_json(low)}, "maxValues": {_json(high)}, ' if all_bounded else ""
    return f'{{"numRecords": {metadata.num_rows}, {of_values}"nullCount": {_json(nulls)}}}'


def _structs(fields: Iterable[pa.Field]) -> dict[str, Any]:
    return {f.name: _structs(f.type) for f in fields if pa.types.is_struct(f.type)}


def _put(tree: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for name in path[:-1]:
        tree = tree[name]
    tree[path[-1]] = value


def _columns_with_bounds(
    fields: Iterable[pa.Field], index: int = 0, above: tuple[str, ...] = ()
) -> Iterator[tuple[int, tuple[str, ...], pa.DataType]]:
    """Number of the Parquet column, path, and type. By place: a column `a.b` is called as the field `b` of `a` is.

    Fractions in structs are left out, since nobody looks for NaN there.
    """
    for field in fields:
        kind, path = field.type, (*above, field.name)
        if pa.types.is_struct(kind):
            yield from _columns_with_bounds(kind, index, path)
        elif not (pa.types.is_binary(kind) or pa.types.is_nested(kind) or (above and pa.types.is_floating(kind))):
            yield index, path, kind
        index += _leaves(kind)


def _leaves(kind: pa.DataType) -> int:
    return sum(_leaves(kind.field(i).type) for i in range(kind.num_fields)) if pa.types.is_nested(kind) else 1


def _json(value: object) -> str:
    """JSON text; decimals with all of their digits, which `json` would make floats of."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(name)}: {_json(each)}' for name, each in value.items())}}}"
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value)


def _bounds(groups: list[Any], kind: pa.DataType) -> tuple[Any, Any]:
    """Lowest and highest value in Delta's form; None where there is none.

    Times and dates are taken as the numbers that Parquet stores: Python's own end at the years 1 and 9999.
    """
    if pa.types.is_timestamp(kind):
        ticks = _TICKS[kind.unit]
        return (
            _instant(min(g.min_raw for g in groups) * 1000 // ticks),
            _instant(-(-max(g.max_raw for g in groups) * 1000 // ticks)),
        )
    if pa.types.is_date32(kind):
        return _day(min(g.min_raw for g in groups)), _day(max(g.max_raw for g in groups))
    lowest, highest = min(g.min for g in groups), max(g.max for g in groups)
    if pa.types.is_string(kind):
        return lowest[:MAX_STRING_STATISTIC], _above(highest)
    if pa.types.is_floating(kind):
        return (lowest, highest) if math.isfinite(lowest) and math.isfinite(highest) else (None, None)
    exact = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    return (lowest, highest) if exact else (None, None)


def _above(text: str) -> str:
    """A short text that sorts at or above `text`."""
    if len(text) <= MAX_STRING_STATISTIC:
        return text
    cut = text[:MAX_STRING_STATISTIC] + _LAST_CHARACTER
    return cut if cut >= text else text


def _instant(ms: int) -> str | None:
    try:
        return f"{(_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"
    except OverflowError:
        return None


def _day(number: int) -> str | None:
    try:
        return (_EPOCH + timedelta(days=number)).date().isoformat()
    except OverflowError:
        return None
