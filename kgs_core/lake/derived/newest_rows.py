"""The newest row of each key among rows."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

DELETED, _ROW = "is deleted", "number of the row"
"""Columns beside those of the table. Names with blanks, which no table has: a transform may well give it `_deleted`."""
ORDERS = {"offset": ("_partition", "_offset"), "timestamp": ("_timestamp", "_partition", "_offset", "_topic_id")}
"""What is compared, by the rule's `order`. `offset`: offsets of one partition tell what is newer; of a key in two
partitions the greater partition counts. `timestamp`: null is the oldest; the topic's id is the last resort, so that the
order in which rows are merged never counts."""


def newest(rows: pa.Table, key: Sequence[str], order: str) -> pa.Table:
    """One row of each key; rows without a key (a null in any of its columns) are left out."""
    import polars as pl

    columns = [*dict.fromkeys([*key, *ORDERS[order]])]
    index = pl.DataFrame(pl.from_arrow(rows.select(columns))).with_row_index(_ROW)
    kept = index.drop_nulls(list(key)).sort(*ORDERS[order], nulls_last=False, maintain_order=True)
    kept = kept.unique(subset=list(key), keep="last", maintain_order=True)
    is_kept = np.zeros(rows.num_rows, dtype=bool)
    is_kept[kept[_ROW].to_numpy()] = True
    return rows.filter(pa.array(is_kept))  # by chunk: to take rows would make one array of all, of at most 2 GB


def is_newer(order: str) -> str:
    """SQL by which row `s` is newer than row `t`."""
    by_offset = "(s._partition > t._partition OR (s._partition = t._partition AND s._offset > t._offset))"
    if order == "offset":
        return by_offset
    by_place = f"({by_offset} OR (s._partition = t._partition AND s._offset = t._offset AND s._topic_id > t._topic_id))"
    same = "(s._timestamp = t._timestamp OR (s._timestamp IS NULL AND t._timestamp IS NULL))"
    later = "(s._timestamp > t._timestamp OR (t._timestamp IS NULL AND s._timestamp IS NOT NULL))"
    return f"({later} OR ({same} AND {by_place}))"
