"""RowChange events of one table, whoever has written them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.errors import ConfigError, UnsafeError


class RowChange(IntEnum):
    """What an event does: to one row of the followed table, to all of them, or nothing."""

    PUT = 0
    DELETE = 1
    TRUNCATE = 2
    NOTHING = 3


@dataclass(frozen=True, slots=True)
class Events:
    """Events in the order of their records, and of the rows within one.

    Attributes:
        rows: columns of the followed table: the row afterwards, or the one that is deleted.
        change: of each, as `RowChange`.
        row_of: number of the record that each is of.
        left_out: column -> mask of the events that leave out its value, which has not changed.
        position: of each in the source, as text that sorts; None: not asked for.
        place: of each in PostgreSQL's log; None: another database's, or not told.
        needs_record_key: whether there are deletes that name their row in the record's key alone.
    """

    rows: pa.Table
    change: pa.Array
    row_of: pa.Array
    left_out: Mapping[str, pa.Array] = field(default_factory=dict)
    position: pa.Array | None = None
    place: pa.Array | None = None
    needs_record_key: bool = False


def is_value_column(name: str) -> bool:
    """Whether a column is of a record's value: kgs's own begin with one '_', Debezium's with two."""
    return not name.startswith("_") or name.startswith("__")


def no_events(words: str) -> ConfigError:
    """Why a table has no events of its producer."""
    return ConfigError([f"newest_rows: changes: {words}"])


def changes_by(words: pa.ChunkedArray, known: Mapping[str, RowChange], column: str) -> pa.Array:
    """`RowChange` of each word; null does nothing.

    Raises:
        UnsafeError: a word that is not known: what it does to a row is not either.
    """
    encoded = words.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    if unknown := sorted({text for text in texts if text not in known}):
        cure = "is no change that kgs knows: give its rows a table without changes"
        raise UnsafeError(f"newest_rows: column {column}: '{unknown[0]}' {cure}")
    values = pa.array([known[text] for text in texts], pa.int8())
    return values.take(encoded.indices).fill_null(int(RowChange.NOTHING))


def column_of(rows: pa.Table, name: str, what: str) -> pa.ChunkedArray:
    """A column.

    Raises:
        ConfigError: it is not there.
    """
    if name not in rows.column_names:
        raise no_events(f"{what} have {name}, the table has no such column: add it to schema")
    return rows[name]


def struct_of(rows: pa.Table, name: str, what: str) -> pa.Array:
    """A column of structs, which raises as `column_of`, and where it is something else."""
    found = column_of(rows, name, what)
    if not pa.types.is_struct(found.type):
        raise no_events(f"column {name} is {found.type}, wanted is a struct of the followed table's columns")
    return found.combine_chunks()


def field_of(struct: pa.Array, name: str, kind: pa.DataType | None = None) -> pa.Array:
    """A field, null where the struct is; all null where there is no such field, of type `kind`."""
    if struct.type.get_field_index(name) < 0:
        return pa.nulls(len(struct), kind or pa.null())
    found = pc.struct_field(struct, name)
    return found if kind is None or found.type == kind else found.cast(kind)


def with_moved_keys(events: Events, before: Mapping[str, pa.Array]) -> Events:
    """With a delete in front of each event that gives its row another key.

    `before`: key column -> its former value; null: not known, or the same.
    """
    is_put = np.asarray(pc.equal(events.change, int(RowChange.PUT)))
    moved = np.zeros(len(events.change), bool)
    for name, values in before.items():
        if name in events.rows.column_names:
            differs = pc.not_equal(events.rows[name], values).fill_null(False)  # noqa: FBT003
            moved |= np.asarray(differs)
    moved &= is_put
    if not moved.any():
        return events
    counts = np.where(moved, 2, 1)
    of = np.repeat(np.arange(len(moved)), counts)
    is_delete = np.zeros(len(of), bool)
    is_delete[(np.cumsum(counts) - counts)[moved]] = True
    index, mask = pa.array(of), pa.array(is_delete)
    rows = events.rows.take(index)
    for name, values in before.items():
        if name in rows.column_names:
            old = pc.if_else(mask, pc.coalesce(values.take(index), rows[name]), rows[name])
            rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), old)
    return Events(
        rows,
        pc.if_else(mask, pa.scalar(int(RowChange.DELETE), pa.int8()), events.change.take(index)),
        events.row_of.take(index),
        {name: pc.and_not(left.take(index), mask) for name, left in events.left_out.items()},
        None if events.position is None else events.position.take(index),
        None if events.place is None else events.place.take(index),
        events.needs_record_key,
    )
