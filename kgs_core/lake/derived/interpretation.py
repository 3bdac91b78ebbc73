"""How the rows of a table become rows of its derived table: as they are, or as the events of a database say.

A derived table's columns are those of the followed table, what Kafka knows of the event, and the columns of headers and
topic. Beside them each row says whether it deletes its key (`DELETED`), and which columns keep the value that is there
already (`KEPT`): a source may leave out what has not changed, and a deleted row that stays keeps its last values. A key
without a row takes the values of the row as they are.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.config import TopicRule
from kgs_core.config.rule.newest_rows import KAFKA_KEY, NewestRows
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.errors import ConfigError
from kgs_core.lake.derived.changes import canal, debezium, maxwell
from kgs_core.lake.derived.changes.events import Events, RowChange, is_value_column
from kgs_core.lake.derived.changes.source_order import SOURCE_POSITION
from kgs_core.lake.derived.changes.source_time import times_of
from kgs_core.lake.derived.changes.types import as_type, type_of
from kgs_core.lake.derived.kept_values import KEPT, none_kept
from kgs_core.lake.derived.newest_rows import DELETED
from kgs_core.lake.derived.versions import NOT_TRUNCATED, TRUNCATED, VALID_FROM, VALID_TO
from kgs_core.lake.files.row_schema import ORIGIN_FIELDS

MARKED = pa.field("_deleted", pa.bool_())
"""Column of the derived table by `deletes: column`."""
_BESIDE = (pa.field(DELETED, pa.bool_()), pa.field(KEPT, pa.list_(pa.string())))
_READERS: Mapping[str, Callable[[pa.Table, tuple[str, ...], bool], Events]] = {
    "debezium": debezium.events_of,
    "maxwell": maxwell.events_of,
    "canal": canal.events_of,
}

_PLACE = pa.field("place in the log", pa.int64())
"""Column beside those of the derived table: of PostgreSQL, which tells what a truncate came behind."""


class Truncate(NamedTuple):
    """Event by which all former rows of the followed table go.

    Offsets tell which these are within its partition. Of rows in other partitions PostgreSQL's log tells it: a truncate
    locks the table, so no change that was written before it is committed behind it.

    Attributes:
        place: in PostgreSQL's log; None: another database's.
        time: when it was, where a history needs it; None: not known.
    """

    topic_id: str
    partition: int
    offset: int
    place: int | None = None
    time: datetime | None = None


def in_order(truncated: Iterable[Truncate]) -> list[Truncate]:
    """The first one first."""
    return sorted(truncated, key=lambda each: (-1 if each.place is None else each.place, *each[:3]))


MAY_TRUNCATE = ("debezium", "canal")
_TRUNCATED = "/truncated/"


def note_of(truncated: Iterable[Truncate], app: str) -> dict[str, int]:
    """Application id -> place of a topic's last truncate: older rows of other partitions may yet be read."""
    found: dict[str, int] = {}
    for each in truncated:
        if each.place is not None:
            name = f"{app}{_TRUNCATED}{each.topic_id}"
            found[name] = max(each.place, found.get(name, each.place))
    return found


def noted_truncates(noted: Mapping[str, int], app: str) -> list[Truncate]:
    """What `note_of` has noted."""
    start = f"{app}{_TRUNCATED}"
    return [
        Truncate(name[len(start) :], -1, -1, at) for name, at in noted.items() if name.startswith(start) and at >= 0
    ]


@dataclass(frozen=True, slots=True)
class Interpreted:
    """Rows for a derived table.

    Attributes:
        rows: its columns, `DELETED`, `KEPT` and what `without_truncated` needs and removes; in the order of the events,
            a key as often as it changed.
    """

    rows: pa.Table
    truncated: list[Truncate] = field(default_factory=list)


@dataclass(frozen=True)
class Interpretation:
    """The reading of one table by its rule's `newest_rows`.

    Attributes:
        source: columns of the table of events, or of plain rows.
        is_history: rows also have `VALID_FROM`, and a truncate takes none away: `TRUNCATED` says which came before it.

    Raises:
        ConfigError: its columns are not what this producer writes, or lack the key.
    """

    rule: TopicRule
    source: pa.Schema
    is_history: bool = False

    @property
    def newest(self) -> NewestRows:
        """The rule's section."""
        if self.rule.newest_rows is None:
            raise ConfigError(["newest_rows: the rule has none"])
        return self.rule.newest_rows

    @property
    def key(self) -> tuple[str, ...]:
        """Columns of the derived table that are its key."""
        return self.rule.newest_key

    def schema(self) -> pa.Schema:
        """Columns of the derived table."""
        rows = self.read(self.source.empty_table()).rows
        of_history = (VALID_TO,) if self.is_history else ()
        return pa.schema([*(f for f in rows.schema if f not in (*_BESIDE, _PLACE)), *of_history])

    def read(self, rows: pa.Table) -> Interpreted:
        """These rows of the source, as the derived table has them."""
        found = self._plain(rows) if self.newest.changes is None else self._changes(rows)
        if missing := [name for name in self.key if name not in found.rows.column_names]:
            names = ", ".join(f.name for f in found.rows.schema if f not in (*_BESIDE, _PLACE))
            raise ConfigError([f"newest_rows: key: no column {', '.join(missing)}, there are {names}"])
        table = found.rows
        if self.newest.deletes == "ignore":
            return Interpreted(table.filter(pc.invert(table[DELETED])))
        return Interpreted(self._marked(table), found.truncated)

    def tombstones(self, rows: pa.Table) -> pa.Table:
        """Rows that delete their key, of columns of the derived table among which that key is."""
        count = rows.num_rows
        whole = {f.name: rows[f.name] if f.name in rows.column_names else pa.nulls(count, f.type) for f in self._own}
        if self.is_history:
            whole[VALID_FROM.name] = whole["_timestamp"]
        found = self.deletes_of(pa.table(whole))
        return self.without_truncated(found, []) if self.is_history else found

    def deletes_of(self, rows: pa.Table) -> pa.Table:
        """Rows that delete the keys of these."""
        beside = [f.name for f in (*_BESIDE, *self._mark) if f.name in rows.column_names]
        whole = rows.drop_columns(beside).append_column(_BESIDE[0], pa.repeat(pa.scalar(value=True), rows.num_rows))
        found = self._marked(whole.append_column(_BESIDE[1], none_kept(rows.num_rows)))
        return found.select(rows.column_names) if beside else found

    def without_truncated(self, rows: pa.Table, truncated: Iterable[Truncate]) -> pa.Table:
        """Rows without those that a truncate came behind, or with these as deleted; for a history, with its number."""
        first = pa.chunked_array([pa.repeat(pa.scalar(NOT_TRUNCATED, pa.int32()), rows.num_rows)])
        has_places = _PLACE.name in rows.column_names
        for number, each in reversed([*enumerate(in_order(truncated))]):
            of_topic = pc.equal(rows["_topic_id"], each.topic_id)  # another topic's table, maybe of another database
            older = pc.and_(pc.equal(rows["_partition"], each.partition), pc.less(rows["_offset"], each.offset))
            if each.place is not None and has_places:
                older = pc.coalesce(pc.less(rows[_PLACE.name], each.place), older)
            first = pc.if_else(pc.and_(of_topic, older), pa.scalar(number, pa.int32()), first)
        rows = rows.drop_columns([_PLACE.name]) if has_places else rows
        if self.is_history:
            return rows.append_column(TRUNCATED, first)
        gone = pc.not_equal(first, NOT_TRUNCATED)
        if self.newest.deletes != "column":
            return rows.filter(pc.invert(gone))
        return rows.set_column(rows.column_names.index(MARKED.name), MARKED, pc.or_(gone, rows[MARKED.name]))

    @cached_property
    def _own(self) -> pa.Schema:
        return pa.schema([f for f in self.schema() if f not in (*self._mark, VALID_TO)])

    @property
    def _mark(self) -> tuple[pa.Field, ...]:
        return (MARKED,) if self.newest.deletes == "column" else ()

    def _plain(self, rows: pa.Table) -> Interpreted:
        """Rows as they are; one of null is a tombstone where its format takes null."""
        has_nulls = FORMATS[self.rule.format].takes_null and "value" in rows.column_names
        deleted = rows["value"].is_null() if has_nulls else pa.repeat(pa.scalar(value=False), rows.num_rows)
        rows = self._timed(rows, rows["_timestamp"]) if self.is_history else rows
        rows = rows.append_column(_BESIDE[0], deleted)
        return Interpreted(rows.append_column(_BESIDE[1], none_kept(rows.num_rows)))

    def _changes(self, rows: pa.Table) -> Interpreted:
        newest, beside = self.newest, {*self.rule.key_columns, *self.rule.headers, *self.rule.topic_columns}
        values = rows.select([name for name in rows.column_names if is_value_column(name) and name not in beside])
        events = _READERS[newest.changes or ""](values, self.key, newest.order == "source")
        change, of = events.change, events.row_of
        image = self._keyed(events, rows)
        for name, kind in newest.types.items():
            if name not in image.column_names:
                raise ConfigError([f"newest_rows: types: no column {name} in {', '.join(image.column_names)}"])
            at = image.column_names.index(name)
            image = image.set_column(at, pa.field(name, type_of(kind)), as_type(name, image[name], kind))
        kept = _lists_of(events.left_out, len(of))
        others = [name for name in (*self.rule.headers, *self.rule.topic_columns) if name in rows.column_names]
        for name in (*others, *(f.name for f in ORIGIN_FIELDS)):
            if name in image.column_names:
                raise ConfigError([f"newest_rows: column {name} of the followed table is also one of kgs: rename it"])
            image = image.append_column(rows.schema.field(name), rows[name].take(of))
        if events.position is not None:
            image = image.append_column(SOURCE_POSITION, events.position)
        if self.is_history:
            times = times_of(values, newest.changes or "").take(of)
            image = self._timed(image, pc.coalesce(times, image["_timestamp"]))
        image = image.append_column(_BESIDE[0], pc.equal(change, RowChange.DELETE)).append_column(_BESIDE[1], kept)
        is_row = pc.is_in(change, pa.array([RowChange.PUT, RowChange.DELETE], pa.int8()))
        if events.place is not None:
            image = image.append_column(_PLACE, events.place)
        where = image.filter(pc.equal(change, RowChange.TRUNCATE))
        names = ("_topic_id", "_partition", "_offset", _PLACE.name, VALID_FROM.name)
        found = where.select([name for name in names if name in where.column_names]).to_pylist()
        return Interpreted(image.filter(is_row), [Truncate(*map(row.get, names)) for row in found])

    @staticmethod
    def _timed(rows: pa.Table, times: pa.Array) -> pa.Table:
        if alike := sorted({VALID_FROM.name, VALID_TO.name} & {*rows.column_names}):
            raise ConfigError([f"newest_rows: history: there is a column {alike[0]} already: rename it"])
        return rows.append_column(VALID_FROM, times)

    def kept_by_deletes(self, rows: pa.Table) -> pa.Scalar:
        """Names of the columns whose former values a delete keeps by `deletes: column`, in the form of `KEPT`."""
        fields = (*ORIGIN_FIELDS, *_BESIDE, _PLACE, VALID_FROM, MARKED)
        own = {*self.key, SOURCE_POSITION.name, TRUNCATED, *(f.name for f in fields)}
        return pa.scalar([name for name in rows.column_names if name not in own], _BESIDE[1].type)

    def _keyed(self, events: Events, rows: pa.Table) -> pa.Table:
        """The rows of the followed table; where an event has none of the key, it is that of its record's key."""
        image, prefix = events.rows, self.rule.key_prefix
        for name in self.key:
            if (column := _of_record_key(rows, prefix, name)) is None:
                continue
            column = column.take(events.row_of)
            if name in image.column_names:
                at, kind = image.column_names.index(name), image.schema.field(name).type
                image = image.set_column(at, name, pc.coalesce(image[name], column.cast(kind)))
        if events.needs_record_key and self.newest.deletes != "ignore":
            known = {*self.rule.headers, *self.rule.topic_columns, KAFKA_KEY}
            lacking = [n for n in self.key if n not in known and _of_record_key(rows, prefix, n) is None]
            if lacking:
                raise ConfigError(
                    [
                        "newest_rows: records without a value delete rows here, and of their keys no column has "
                        f"{', '.join(lacking)}: give key_format and key_schema, or key: [_key]"
                    ]
                )
        return image

    def _marked(self, rows: pa.Table) -> pa.Table:
        """With deletes as a column, if that is wanted.

        Deleted rows keep the values that were there last: what an event has of them depends on the database.
        """
        if self.newest.deletes != "column":
            return rows
        if MARKED.name in rows.column_names:
            raise ConfigError([f"newest_rows: there is a column {MARKED.name} already: set deletes: remove, or ignore"])
        names = self.kept_by_deletes(rows)
        deleted, stays = rows[DELETED], pa.repeat(pa.scalar(value=False), rows.num_rows)
        kept = pc.if_else(deleted, names, rows[KEPT])
        beside = zip(_BESIDE, (stays, kept), strict=True)
        rows = rows.drop_columns([f.name for f in _BESIDE]).append_column(MARKED, deleted)
        for each, column in beside:
            rows = rows.append_column(each, column)
        return rows


def _of_record_key(rows: pa.Table, prefix: str, name: str) -> pa.ChunkedArray | None:
    """Column of the records' keys that has this field; None: there is none."""
    whole, enveloped = f"{prefix}{name}", f"{prefix}payload"
    if whole in rows.column_names:
        return rows[whole]
    if enveloped in rows.column_names and pa.types.is_struct(kind := rows.schema.field(enveloped).type):
        return pc.struct_field(rows[enveloped], name) if kind.get_field_index(name) >= 0 else None
    return None


def _lists_of(masks: Mapping[str, pa.Array], count: int) -> pa.Array:
    """Row -> names of the masks that are true for it."""
    if not masks:
        return none_kept(count)
    which = np.stack([np.asarray(mask) for mask in masks.values()], axis=1)
    names = np.array(list(masks), object)[np.nonzero(which)[1]]
    offsets = np.concatenate([[0], np.cumsum(which.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(names.tolist(), pa.string()))
