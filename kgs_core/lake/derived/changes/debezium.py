"""Debezium's events: envelopes of `before`, `after`, `op` and `source`, or rows by `ExtractNewRecordState`.

Understood are snapshots (`r`), truncates (`t`), values that PostgreSQL has not sent because they did not change
(TOAST), and records without a value: behind an envelope that deletes they say nothing new, among flattened rows they
delete. Of flattened rows, `__deleted` and `__op` tell deletes where they are columns.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.config.rule.newest_rows import UNAVAILABLE
from kgs_core.lake.derived.changes.events import (
    Events,
    RowChange,
    changes_by,
    field_of,
    no_events,
    struct_of,
    with_moved_keys,
)
from kgs_core.lake.derived.changes.source_order import places_of, positions_of

_OPS = {
    "c": RowChange.PUT,
    "u": RowChange.PUT,
    "r": RowChange.PUT,
    "d": RowChange.DELETE,
    "t": RowChange.TRUNCATE,
    "m": RowChange.NOTHING,  # a message written to PostgreSQL's log, of no row
}
_PLACEHOLDERS: tuple[tuple[pa.DataType, object], ...] = (
    (pa.string(), UNAVAILABLE),
    (pa.binary(), UNAVAILABLE.encode()),
    (pa.list_(pa.string()), [UNAVAILABLE]),
    *((pa.list_(kind), list(UNAVAILABLE.encode())) for kind in (pa.int32(), pa.int64())),
    (pa.map_(pa.string(), pa.string()), [(UNAVAILABLE, UNAVAILABLE)]),
)
_OTHERS = (
    ({"status", "id", "event_count"}, "of transactions"),
    ({"ddl", "databaseName"}, "of changes of schemas"),
)


def events_of(values: pa.Table, key: tuple[str, ...], with_positions: bool) -> Events:  # noqa: FBT001 - as the others
    """Events of records' values.

    Raises:
        ConfigError: the columns are not Debezium's.
        UnsafeError: an `op` that is not known, or no position in the source where it was asked for.
    """
    values = unwrapped(values)
    for names, what in _OTHERS:
        if names <= {*values.column_names}:
            raise no_events(f"Debezium's topic {what} has no rows: leave it out with 'not'")
    if {"op", "after"} <= {*values.column_names}:
        return _of_envelopes(values, key, with_positions)
    if "op" in values.column_names and "source" in values.column_names:
        struct_of(values, "after", "Debezium's envelopes")
    return _of_rows(values, with_positions)


def unwrapped(values: pa.Table) -> pa.Table:
    """The values without the envelope of `schema` and `payload` that JSON may have."""
    if "payload" in values.column_names and pa.types.is_struct(values.schema.field("payload").type):
        payload = values["payload"].combine_chunks()
        return pa.table({f.name: field_of(payload, f.name) for f in payload.type})
    return values


def _of_envelopes(values: pa.Table, key: tuple[str, ...], with_positions: bool) -> Events:  # noqa: FBT001
    after = struct_of(values, "after", "Debezium's envelopes")
    before = struct_of(values, "before", "Debezium's envelopes") if "before" in values.column_names else after
    change = changes_by(values["op"], _OPS, "op")
    is_delete = pc.equal(change, int(RowChange.DELETE))
    columns = {
        f.name: pc.if_else(is_delete, field_of(before, f.name, f.type), field_of(after, f.name)) for f in after.type
    }
    rows, left_out = _without_placeholders(pa.table(columns))
    # of a row that is new no former value counts: PostgreSQL leaves out some where a key has changed
    is_update = pc.coalesce(pc.equal(values["op"].combine_chunks(), "u"), pa.scalar(value=False))
    left_out = {name: pc.and_(mask, is_update) for name, mask in left_out.items()}
    position = positions_of(values, pc.equal(values["op"].combine_chunks(), "r")) if with_positions else None
    events = Events(rows, change, _numbers(values), left_out, position, places_of(values))
    if before is after:
        return events
    return with_moved_keys(events, {name: field_of(before, name) for name in key if name in columns})


def _of_rows(values: pa.Table, with_positions: bool) -> Events:  # noqa: FBT001
    own = [name for name in values.column_names if not name.startswith("__")]
    is_empty = pa.repeat(pa.scalar(value=True), values.num_rows)
    for name in own:
        is_empty = pc.and_(is_empty, values[name].combine_chunks().is_null())
    deletes = is_empty
    if "__deleted" in values.column_names:
        is_marked = pc.equal(values["__deleted"].combine_chunks().cast(pa.string()), "true")
        deletes = pc.or_(deletes, pc.coalesce(is_marked, pa.scalar(value=False)))
    change = pc.if_else(deletes, pa.scalar(int(RowChange.DELETE), pa.int8()), pa.scalar(int(RowChange.PUT), pa.int8()))
    if "__op" in values.column_names:
        of_op = changes_by(values["__op"], _OPS, "__op")
        change = pc.if_else(pc.equal(of_op, int(RowChange.NOTHING)), change, pc.if_else(deletes, change, of_op))
    rows, left_out = _without_placeholders(values.select(own))
    is_read = (
        pc.equal(values["__op"].combine_chunks(), "r")
        if "__op" in values.column_names
        else pa.nulls(values.num_rows, pa.bool_())
    )
    position = positions_of(values, is_read) if with_positions else None
    needs = bool(pc.any(is_empty).as_py()) and not {"__deleted", "__op"} & {*values.column_names}
    return Events(rows, change, _numbers(values), left_out, position, needs_record_key=needs)


def _without_placeholders(rows: pa.Table) -> tuple[pa.Table, Mapping[str, pa.Array]]:
    """The rows with null for values that were not sent, and which these are."""
    left_out = {}
    for at, (name, kind) in enumerate(zip(rows.column_names, rows.schema.types, strict=True)):
        column = rows[name].combine_chunks()
        mask = _is_unavailable(column, kind)
        if mask is not None and pc.any(mask).as_py():
            left_out[name] = mask
            rows = rows.set_column(at, pa.field(name, kind), pc.if_else(mask, pa.scalar(None, kind), column))
    return rows, left_out


def _is_unavailable(column: pa.Array, kind: pa.DataType) -> pa.Array | None:
    placeholder = next((value for each, value in _PLACEHOLDERS if each == kind), None)
    if placeholder is None:
        return None
    if isinstance(placeholder, str | bytes):
        return pc.equal(column, pa.scalar(placeholder, kind)).fill_null(False)  # noqa: FBT003
    lengths = pc.list_value_length(column if pa.types.is_list(kind) else column.cast(_entries(kind)))
    may_be = pc.equal(lengths, len(placeholder)).fill_null(False)  # type: ignore[arg-type] # noqa: FBT003
    if not pc.any(may_be).as_py():
        return None
    return pa.array([m and v == placeholder for m, v in zip(may_be.to_pylist(), column.to_pylist(), strict=True)])


def _entries(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)]))


def _numbers(values: pa.Table) -> pa.Array:
    return pa.array(range(values.num_rows), pa.int64())
