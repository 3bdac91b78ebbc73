"""Fewer and larger files, and rows that are looked for together side by side: compaction and Z-order.

Z-order writes all files of a partition value anew, whatever was in order already. So it is done where a fifth of the
bytes, at least, is new: each byte is written again a few times in its life, not at every maintenance. A table with
`z_order_by` is not compacted besides, since what compaction makes could not be told from what is in order.
"""

import logging
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from kgs_core.lake.delta.table_changes import value_text
from kgs_core.lake.files.parquet_writer import FILE_ENDING
from kgs_core.ports import TableLayout

_log = logging.getLogger(__name__)
MAX_ROUND_TRIP_DIGITS = 15
"""Digits of a decimal that every float keeps."""
DERIVED = "newest row of each key of "
"""What descriptions of derived tables begin with. They are compacted by what merges them: two would be in each other's
way, since a merge touches most files."""
NEW_SHARE = 4
"""Bytes in order are at most so many times those of new files where Z-order is done."""


def rearrange(table: DeltaTable, layout: TableLayout) -> None:
    """Join small files, or order the rows by several columns at once; readers see the same rows before and after.

    Not done where it would hide rows: deltalake rounds bounds of decimals to floats, so also beyond a value.

    Raises:
        Exception: another maintenance was first, or the store did not answer; the table is as before, or in part done.
    """
    if (table.metadata().description or "").startswith(DERIVED):
        return
    wide = [field.name for field in pa.schema(table.schema()) if has_long_decimals(pa.schema([field]))]
    if wide:
        _log.warning(
            "table %s is not compacted: readers would skip rows by the bounds that this gives to decimals of more than "
            "%d digits (%s): compact it with Spark",
            table.table_uri,
            MAX_ROUND_TRIP_DIGITS,
            ", ".join(wide),
        )
        return
    if not layout.z_order_by:
        table.optimize.compact(target_size=layout.target_file_bytes, max_concurrent_tasks=1)
        return
    for values in _due(table):
        filters: Any = [(name, "=", value_text(value) or "") for name, value in values.items()]
        table.optimize.z_order(
            layout.z_order_by,
            partition_filters=filters or None,
            target_size=layout.target_file_bytes,
            max_concurrent_tasks=1,
        )


def has_long_decimals(schema: pa.Schema) -> bool:
    """Whether a column holds decimals that do not come back from a float, which deltalake's bounds are."""
    return any(_digits(field.type) > MAX_ROUND_TRIP_DIGITS for field in schema)


def _digits(kind: pa.DataType) -> int:
    if pa.types.is_nested(kind):
        return max((_digits(kind.field(i).type) for i in range(kind.num_fields)), default=0)
    return kind.precision if pa.types.is_decimal(kind) else 0


def _due(table: DeltaTable) -> list[Mapping[str, Any]]:
    """Partition values with so much that is new that ordering them is worth its work."""
    columns = table.metadata().partition_columns
    found: dict[tuple[Any, ...], list[int]] = {}
    for file in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        sizes = found.setdefault(tuple(file[f"partition.{name}"] for name in columns), [0, 0])
        sizes[str(file["path"]).endswith(FILE_ENDING)] += file["size_bytes"]
    return [dict(zip(columns, key, strict=True)) for key, (old, new) in found.items() if new and new * NEW_SHARE >= old]
