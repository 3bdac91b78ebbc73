"""Fewer and larger files, and rows that are looked for together side by side: compaction and Z-order.

Z-order writes all files of a partition value anew, whatever was in order already. So it is done where a fifth of the
bytes, at least, is new: each byte is written again a few times in its life, not at every maintenance. A table with
`z_order_by` is not compacted besides, since what compaction makes could not be told from what is in order.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from kgs_core.adapters.lake.parquet_writer import FILE_ENDING
from kgs_core.ports import TableLayout

NEW_SHARE = 4
"""Bytes in order are at most so many times those of new files where Z-order is done."""


def rearrange(table: DeltaTable, layout: TableLayout) -> None:
    """Join small files, or order the rows by several columns at once; readers see the same rows before and after.

    Raises:
        Exception: another maintenance was first, or the store did not answer; the table is as before, or in part done.
    """
    if not layout.z_order_by:
        table.optimize.compact(target_size=layout.target_file_bytes, max_concurrent_tasks=1)
        return
    for values in _due(table):
        filters: Any = [(name, "=", _filter_text(value)) for name, value in values.items()]
        table.optimize.z_order(
            layout.z_order_by,
            partition_filters=filters or None,
            target_size=layout.target_file_bytes,
            max_concurrent_tasks=1,
        )


def _due(table: DeltaTable) -> list[Mapping[str, Any]]:
    """Partition values with so much that is new that ordering them is worth its work."""
    columns = table.metadata().partition_columns
    found: dict[tuple[Any, ...], list[int]] = {}
    for file in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        sizes = found.setdefault(tuple(file[f"partition.{name}"] for name in columns), [0, 0])
        sizes[str(file["path"]).endswith(FILE_ENDING)] += file["size_bytes"]
    return [dict(zip(columns, key, strict=True)) for key, (old, new) in found.items() if new and new * NEW_SHARE >= old]


def _filter_text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
