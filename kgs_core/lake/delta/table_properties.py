"""Which table properties kgs sets, and which it refuses because they break exactly-once."""

from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable

from kgs_core.errors import UnsafeError
from kgs_core.lake.files.columns import misfits

_BREAKING = {
    "delta.setTransactionRetentionDuration": "forgets positions, so that everything is read and written again",
    "delta.columnMapping.mode": "renames columns under the writer",
    "delta.enableDeletionVectors": "hides rows that were committed",
    "delta.enableRowTracking": "needs columns that the writer does not fill",
    "delta.enableTypeWidening": "changes column types under the writer",
}
MAX_WRITER_VERSION = 2
_HARMLESS_VALUES = {"none", "false"}


def wanted_properties(checkpoint_interval: int) -> dict[str, str]:
    """Properties of a new table: checkpoints (commits slow down without them), a log that is cleaned, no deletes."""
    return {
        "delta.appendOnly": "true",
        "delta.checkpointInterval": str(checkpoint_interval),
        "delta.logRetentionDuration": "interval 24 hours",
        "delta.enableExpiredLogCleanup": "true",
    }


def check_table(table: DeltaTable, name: str, schema: pa.Schema, partition_by: Sequence[str] = ()) -> None:
    """Refuse a table whose properties, protocol, partitioning or schema do not let the guarantee hold.

    One with more columns than `schema` is taken: rows are null there.

    Raises:
        UnsafeError: names the table, the property and the way out.
    """
    configuration = table.metadata().configuration
    for key, why in _BREAKING.items():
        if configuration.get(key, "none").lower() not in _HARMLESS_VALUES:
            raise UnsafeError(f"table {name}: property {key} = {configuration[key]} {why}: unset it")
    protocol = table.protocol()
    if protocol.min_reader_version != 1 or protocol.min_writer_version > MAX_WRITER_VERSION:
        features = [*(protocol.reader_features or []), *(protocol.writer_features or [])]
        raise UnsafeError(
            f"table {name}: Delta protocol {protocol.min_reader_version}/{protocol.min_writer_version} "
            f"({', '.join(features) or 'no features named'}) is not one kgs writes safely: rebuild it at 1/2"
        )
    partitioned_by = table.metadata().partition_columns
    if partitioned_by != list(partition_by):
        raise UnsafeError(
            f"table {name}: is {_layout(partitioned_by)}, its rule in kgs.yaml says {_layout(partition_by)}, and a "
            "table's partition columns cannot be changed: fix the rule's partition_by, or name another table"
        )
    problems = misfits(schema, pa.schema(table.schema()))
    if problems:
        raise UnsafeError(
            f"table {name}: its columns are not the configured ones: {'; '.join(problems)}: "
            "fix the schema in kgs.yaml, say evolve: add_columns where some are new, or name another table"
        )


def _layout(columns: Sequence[str]) -> str:
    return f"partitioned by {', '.join(columns)}" if columns else "not partitioned"
