"""Which table properties kgs sets, and which it refuses because they break exactly-once."""

import pyarrow as pa
from deltalake import DeltaTable

from kgs_core.errors import UnsafeError

_BREAKING = {
    "delta.setTransactionRetentionDuration": "forgets positions, so that everything is read and written again",
    "delta.columnMapping.mode": "renames columns under the writer",
    "delta.enableDeletionVectors": "hides rows that were committed",
    "delta.enableRowTracking": "needs columns that the writer does not fill",
    "delta.enableTypeWidening": "changes column types under the writer",
}
MAX_WRITER_VERSION = 2
_HARMLESS_VALUES = {"none", "false"}


def wanted_properties(checkpoint_interval: int, log_retention_h: int) -> dict[str, str]:
    """Properties of a new table: checkpoints (commits slow down without them), a log that is cleaned, no deletes."""
    return {
        "delta.appendOnly": "true",
        "delta.checkpointInterval": str(checkpoint_interval),
        "delta.logRetentionDuration": f"interval {log_retention_h} hours",
        "delta.enableExpiredLogCleanup": "true",
    }


def check_table(table: DeltaTable, name: str, schema: pa.Schema) -> None:
    """Refuse a table whose properties, protocol, partitioning or schema do not let the guarantee hold.

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
    if table.metadata().partition_columns:
        raise UnsafeError(
            f"table {name}: is partitioned by {table.metadata().partition_columns}: kgs writes unpartitioned"
        )
    there = _canonical(pa.schema(table.schema()))
    wanted = _canonical(schema)
    if there != wanted:
        raise UnsafeError(
            f"table {name}: its columns are not the configured ones: {_difference(there, wanted)}: "
            "mend the schema in kgs.yaml, or name another table"
        )


def _canonical(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(_plain(field.type)) for field in schema}


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without the names of items and entries, and the views, that different readers choose."""
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("item", _plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _plain(f.type)) for f in kind])
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def _difference(there: dict[str, str], wanted: dict[str, str]) -> str:
    parts = [f"{n} is {there[n]}, wanted {wanted[n]}" for n in wanted if n in there and there[n] != wanted[n]]
    parts += [f"{n} is missing" for n in wanted if n not in there]
    parts += [f"{n} is not configured" for n in there if n not in wanted]
    return "; ".join(parts)
