"""Maxwell's events: `type`, `data` with the row (or the deleted one), `old` with the former values that changed."""

import pyarrow as pa

from kgs_core.lake.derived.changes.events import (
    Events,
    RowChange,
    changes_by,
    column_of,
    field_of,
    struct_of,
    with_moved_keys,
)

_TYPES = {
    "insert": RowChange.PUT,
    "update": RowChange.PUT,
    "bootstrap-insert": RowChange.PUT,
    "delete": RowChange.DELETE,
    "bootstrap-start": RowChange.NOTHING,
    "bootstrap-complete": RowChange.NOTHING,
    **{f"{what}-{how}": RowChange.NOTHING for what in ("table", "database") for how in ("create", "alter", "drop")},
}


def events_of(values: pa.Table, key: tuple[str, ...], with_positions: bool) -> Events:  # noqa: ARG001, FBT001
    """Events of records' values.

    Raises:
        ConfigError: the columns are not Maxwell's.
        UnsafeError: a `type` that is not known.
    """
    data = struct_of(values, "data", "Maxwell's events")
    change = changes_by(column_of(values, "type", "Maxwell's events"), _TYPES, "type")
    rows = pa.table({f.name: field_of(data, f.name) for f in data.type})
    events = Events(rows, change, pa.array(range(values.num_rows), pa.int64()))
    if "old" not in values.column_names:
        return events
    old = struct_of(values, "old", "Maxwell's events")
    return with_moved_keys(events, {name: field_of(old, name) for name in key if old.type.get_field_index(name) >= 0})
