"""Canal's events: `type`, `data` with rows of texts (one record may have several), `old` with what each has changed."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.lake.derived.changes.events import (
    Events,
    RowChange,
    changes_by,
    column_of,
    field_of,
    no_events,
    with_moved_keys,
)

_TYPES = {
    "INSERT": RowChange.PUT,
    "UPDATE": RowChange.PUT,
    "DELETE": RowChange.DELETE,
    "TRUNCATE": RowChange.TRUNCATE,
    **dict.fromkeys(
        ("CREATE", "ALTER", "ERASE", "QUERY", "RENAME", "CINDEX", "DINDEX", "GTID", "XACOMMIT", "XAROLLBACK"),
        RowChange.NOTHING,
    ),
}


def events_of(values: pa.Table, key: tuple[str, ...], with_positions: bool) -> Events:  # noqa: ARG001, FBT001
    """Events of records' values, one for each row in their `data`.

    Raises:
        ConfigError: the columns are not Canal's.
        UnsafeError: a `type` that is not known.
    """
    change = changes_by(column_of(values, "type", "Canal's events"), _TYPES, "type")
    data = _lists(values, "data")
    counts = np.where(np.asarray(change) <= RowChange.DELETE, _lengths(data), np.asarray(change) == RowChange.TRUNCATE)
    of = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    image, numbers = _rows(data, of, within), pa.array(of, pa.int64())
    rows = pa.table({f.name: field_of(image, f.name) for f in image.type})
    events = Events(rows, change.take(numbers), numbers)
    if "old" not in values.column_names:
        return events
    old = _rows(_lists(values, "old"), of, within)
    names = [name for name in key if old.type.get_field_index(name) >= 0]
    return with_moved_keys(events, {name: field_of(old, name) for name in names})


def _lists(values: pa.Table, name: str) -> pa.Array:
    kind = values.schema.field(name).type if name in values.column_names else pa.null()
    if not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)):
        raise no_events(f"column {name} of Canal's events is to be array<struct<...>>")
    return values[name].combine_chunks()


def _lengths(lists: pa.Array) -> np.ndarray:
    return np.asarray(pc.list_value_length(lists).fill_null(0))


def _rows(lists: pa.Array, of: np.ndarray, within: np.ndarray) -> pa.Array:
    """Item `within` of list `of`; null where it has none."""
    lengths = _lengths(lists)
    at = (np.cumsum(lengths) - lengths)[of] + within
    return lists.flatten().take(pa.array(at, pa.int64(), mask=within >= lengths[of]))
