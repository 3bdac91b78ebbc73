"""The newest row of each key among rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.lake.derived.kept_values import KEPT, ROW, Places, kept_values, none_kept, with_kept_values
from kgs_core.lake.files.row_digests import row_digests

if TYPE_CHECKING:
    import polars as pl

DELETED = "is deleted"
"""Column beside those of the table. A name with blanks, which no table has: a transform may well give it `_deleted`."""
_PLACE = ("_partition", "_offset", "_topic_id")
ORDERS = {
    "offset": ("_partition", "_offset"),
    "timestamp": ("_timestamp", *_PLACE),
    "source": ("_source_position", *_PLACE),
}
"""What is compared, by the rule's `order`. `offset`: offsets of one partition tell what is newer; of a key in two
partitions the greater partition counts. `timestamp`: null is the oldest; the topic's id is the last resort, so that the
order in which rows are merged never counts. `source`: likewise, of the position in the database's log."""


def newest(rows: pa.Table, key: Sequence[str], order: str) -> pa.Table:
    """One row of each key; rows without a key (a null in any of its columns) are left out.

    A column that such a row keeps (`KEPT`) has the value of the row before it that has one, if there is any.
    """
    oldest_first = ordered(rows, key, order)
    rows = with_kept_values(rows, oldest_first, key) if may_keep(rows) else rows
    return _rows_at(rows, _last(oldest_first, key))


def needed(rows: pa.Table, key: Sequence[str], order: str) -> pa.Table:
    """The rows that `newest` makes its rows of, now or with more rows of any age: give it these once all are there."""
    oldest_first = ordered(rows, key, order)
    last = _last(oldest_first, key)
    if not may_keep(rows):
        return _rows_at(rows, last)
    is_last = np.zeros(rows.num_rows, dtype=bool)
    is_last[last] = True
    givers = [givers[is_last[takers]] for _, takers, givers, _ in kept_values(rows, oldest_first, key)]
    return _rows_at(rows, np.concatenate([last, *givers]))


def ordered(rows: pa.Table, key: Sequence[str], order: str, more: Sequence[str] = ()) -> "pl.DataFrame":
    """Numbers (`ROW`), keys and some columns of the rows that have a key, the oldest first."""
    import polars as pl

    columns = [*dict.fromkeys([*key, *ORDERS[order], *more])]
    index = pl.DataFrame(pl.from_arrow(rows.select(columns))).with_row_index(ROW)
    return index.drop_nulls(list(key)).sort(*ORDERS[order], nulls_last=False, maintain_order=True)


def _last(oldest_first: "pl.DataFrame", key: Sequence[str]) -> Places:
    return oldest_first.unique(subset=list(key), keep="last", maintain_order=True)[ROW].to_numpy()


def may_keep(rows: pa.Table) -> bool:
    """Whether any column of any row keeps its former value."""
    return KEPT in rows.column_names and len(pc.list_flatten(rows[KEPT])) > 0


def _rows_at(rows: pa.Table, places: Places) -> pa.Table:
    is_there = np.zeros(rows.num_rows, dtype=bool)
    is_there[places] = True
    return rows.filter(pa.array(is_there))  # by chunk: to take rows would make one array of all, of at most 2 GB


def has_key(rows: pa.Table, keys: pa.Table) -> npt.NDArray[np.bool_]:
    """Which of the rows have one of these keys; null is none."""
    import polars as pl

    names = keys.column_names
    index = pl.DataFrame(pl.from_arrow(rows.select(names).cast(keys.schema))).with_row_index(ROW)
    found = np.zeros(rows.num_rows, np.bool_)
    found[index.join(pl.DataFrame(pl.from_arrow(keys)), on=names, how="semi")[ROW].to_numpy()] = True
    return found


def as_changes(rows: pa.Table) -> pa.Table:
    """Rows of the derived table, as if they were read."""
    stays = pa.repeat(pa.scalar(value=False), rows.num_rows)
    return rows.append_column(DELETED, stays).append_column(KEPT, none_kept(rows.num_rows))


def as_oldest(rows: pa.Table, key: Sequence[str], order: str) -> pa.Table:
    """Rows as if they were older than all others of their keys, and nowhere."""
    columns = [
        pa.nulls(rows.num_rows, f.type) if f.name in ORDERS[order] and f.name not in key else rows[f.name]
        for f in rows.schema
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def of_part(rows: pa.Table, key: Sequence[str], part: int, parts: int) -> pa.Table:
    """The rows whose keys belong to one of some equal parts of all keys, the same in all calls of a process."""
    if parts == 1:
        return rows
    return rows.filter(pa.array(row_digests(rows.select(list(key))) % np.uint64(parts) == part))
