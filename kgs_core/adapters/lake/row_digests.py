"""A number of 64 bits for each row, by its values: equal values give equal numbers, however a file keeps them."""

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

Digests = npt.NDArray[np.uint64]


def row_digests(rows: pa.Table) -> Digests:
    """Digest of each row over all columns; a column that is missing counts as one of nulls."""
    found = np.zeros(rows.num_rows, np.uint64)
    for name in rows.column_names:
        column = rows[name].combine_chunks()
        if column.null_count < len(column):
            found += np.where(_is_null(column), np.uint64(0), _mixed(_hashes(column), name))
    return found


def _is_null(column: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return found


def _mixed(hashes: Digests, name: str) -> Digests:
    """Equal values of two columns give different numbers, so that a row with both exchanged is another one."""
    mixed: Digests = pd.util.hash_array(hashes + pd.util.hash_array(np.array([name], object), categorize=False))
    return mixed | np.uint64(1)  # none is that of a null


def _hashes(column: pa.Array) -> Digests:
    """What stands for a null is anything."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_decimal(kind):
        values = np.array([repr(value) for value in column.to_pylist()] + [None], object)[:-1]
    elif any(is_it(kind) for is_it in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)):
        # Byte for character: hashes are of text
        texts = [None if value is None else value.decode("latin-1") for value in column.to_pylist()]
        values = np.array([*texts, None], object)[:-1]
    elif any(is_it(kind) for is_it in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
        values = column.cast(pa.string()).to_numpy(zero_copy_only=False)
    elif pa.types.is_floating(kind):
        values = column.to_numpy(zero_copy_only=False).astype(np.float64)
    else:
        values = pc.fill_null(_as_integers(column), 0).to_numpy(zero_copy_only=False)
    if values.dtype == object:
        values = np.where(_is_null(column), "", values)
    hashes: Digests = pd.util.hash_array(values)
    return hashes


def _as_integers(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz))
    elif pa.types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    return column.cast(pa.int64())
