"""Fewer and larger files: compaction."""

import logging

import pyarrow as pa
from deltalake import DeltaTable

_log = logging.getLogger(__name__)
MAX_ROUND_TRIP_DIGITS = 15
"""Digits of a decimal that every float keeps."""
DERIVED = "newest row of each key of "
"""What descriptions of derived tables begin with. They are compacted by what merges them: two would be in each other's
way, since a merge touches most files."""


def compact(table: DeltaTable) -> None:
    """Join small files; readers see the same rows before and after.

    Not done where it would hide rows: deltalake makes floats of the bounds of decimals, and rounds them beyond values.

    Raises:
        Exception: another maintenance was first, or the store did not answer; the table is as before, or in part done.
    """
    if (table.metadata().description or "").startswith(DERIVED):
        return
    wide = [field.name for field in pa.schema(table.schema()) if _digits(field.type) > MAX_ROUND_TRIP_DIGITS]
    if wide:
        _log.warning(
            "table %s is not compacted: readers would skip rows by the bounds that this gives to decimals of more than "
            "%d digits (%s): compact it with Spark",
            table.table_uri,
            MAX_ROUND_TRIP_DIGITS,
            ", ".join(wide),
        )
        return
    table.optimize.compact(max_concurrent_tasks=1)


def _digits(kind: pa.DataType) -> int:
    """Most digits of a decimal that a column of this type holds."""
    if pa.types.is_nested(kind):
        return max((_digits(kind.field(i).type) for i in range(kind.num_fields)), default=0)
    return kind.precision if pa.types.is_decimal(kind) else 0
