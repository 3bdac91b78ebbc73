"""Values that a row keeps: they are those of the last row before it, of the same key, that has one."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import polars as pl
Places = np.ndarray[Any, np.dtype[Any]]

KEPT, ROW, GROUP = "columns kept", "number of the row", "number of its key"
"""Columns beside those of a table: names of the columns whose former value a row keeps; and of this reading."""


def none_kept(count: int) -> pa.Array:
    """Of so many rows that none keeps anything."""
    return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.string()))


def by_key(ordered: "pl.DataFrame", key: Sequence[str]) -> "pl.DataFrame":
    """The same by key, with its `GROUP`."""
    import polars as pl

    return ordered.with_columns(pl.struct(key).rank("dense").alias(GROUP)).sort(GROUP, maintain_order=True)


def kept_values(
    rows: pa.Table, ordered: "pl.DataFrame", key: Sequence[str]
) -> Iterator[tuple[str, Places, Places, npt.NDArray[np.bool_]]]:
    """Column, rows that keep its value, beside each the row that gives it, and whether no older row could give another.

    The first row of a key has no row before it: it gives what it has, though it may keep it, too.

    Args:
        ordered: numbers and keys of those that have a key, the oldest first.
    """
    of_keys = by_key(ordered, key)
    number, group = of_keys[ROW].to_numpy(), of_keys[GROUP].to_numpy()
    first = np.searchsorted(group, group)  # of each one's key
    lists = rows[KEPT].combine_chunks()
    of_row, names = pc.list_parent_indices(lists).to_numpy(), lists.flatten()
    for name in pc.unique(names).to_pylist():
        keeps = np.zeros(rows.num_rows, bool)
        keeps[of_row[np.asarray(pc.equal(names, name))]] = True
        keeps = keeps[number]
        here = np.arange(len(number))
        giver = np.maximum.accumulate(np.where(keeps, -1, here))
        is_sure = giver >= first
        giver = np.where(is_sure, giver, first)
        found = keeps & (giver < here)
        yield name, number[found], number[giver[found]], is_sure[found]


def with_kept_values(rows: pa.Table, ordered: "pl.DataFrame", key: Sequence[str]) -> pa.Table:
    """The rows with these values; they still keep what an older row may have."""
    lists = rows[KEPT].combine_chunks()
    of_row, names = pc.list_parent_indices(lists).to_numpy(), lists.flatten()
    still = np.ones(len(names), bool)
    out = rows
    for name, takers, givers, is_sure in kept_values(rows, ordered, key):
        from_row, is_taker = np.arange(rows.num_rows), np.zeros(rows.num_rows, bool)
        from_row[takers], is_taker[takers] = givers, True
        values = rows[name].take(pa.array(from_row, mask=~is_taker))
        column = pc.if_else(pa.array(is_taker), values, rows[name])
        out = out.set_column(rows.column_names.index(name), rows.schema.field(name), column)
        is_taker[takers] = is_sure
        still &= ~(np.asarray(pc.equal(names, name)) & is_taker[of_row])
    counts = np.bincount(of_row[still], minlength=rows.num_rows)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    left = pa.ListArray.from_arrays(offsets, names.filter(pa.array(still)), type=lists.type)
    return out.set_column(rows.column_names.index(KEPT), rows.schema.field(KEPT), left)
