"""The history beside a table of newest rows: each change of a key is a row, with the time from and to which it holds.

A merge reads the rows that hold now, of the keys that changed: they are written again with their end, beside the new
ones. Rows that have ended lie in files of their own, which merges pass over. Only where a change is older than the
last one of its key are those read too; and where deletes leave no row to compare with, all is made anew. So it is where
a truncate came, or rows that one came behind.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.config import Settings, TableSpec
from kgs_core.lake.delta.table_changes import ChangesLostError
from kgs_core.lake.derived.interpretation import MARKED, Truncate, in_order
from kgs_core.lake.derived.kept_values import GROUP, KEPT, ROW, by_key
from kgs_core.lake.derived.key_merge import FILE, KeyMerge, by_file, rows_at, rows_with_keys
from kgs_core.lake.derived.latest_by_key import LatestByKeyTable, Materialization
from kgs_core.lake.derived.newest_rows import as_changes, has_key, of_part, ordered
from kgs_core.lake.derived.source_table import SourceTable
from kgs_core.lake.derived.versions import (
    NOT_TRUNCATED,
    NUMBER,
    TRUNCATED,
    VALID_TO,
    versions,
    with_truncates,
)
from kgs_core.lake.files.places import count_of


def derived_table(settings: Settings, spec: TableSpec, name: str) -> LatestByKeyTable:
    """The one of a topic's derived tables with this path."""
    return (HistoryTable if name == spec.history_table else LatestByKeyTable)(settings, spec)


class HistoryTable(LatestByKeyTable):
    """The history of a table whose rule's `newest_rows` has one; `spec` is of one of its topics."""

    _is_history = True

    def _merged(self, rows: pa.Table, source: SourceTable) -> KeyMerge:
        if pc.any(pc.not_equal(rows[TRUNCATED], NOT_TRUNCATED)).as_py():
            raise ChangesLostError("rows came that a truncate came behind")
        rows, table = rows.drop_columns([TRUNCATED]), self._target.schema
        keys = pl.DataFrame(pl.from_arrow(rows.select(list(self._key)))).drop_nulls().unique()
        former = self._rows_of_keys(keys, rows, source, is_late=False)
        late, stable = self._late(former, rows), former.num_rows
        if late.height:
            if self._latest.deletes == "remove":
                raise ChangesLostError("changes came that are older than those before them")
            former = former.filter(pa.array(~has_key(former, late.to_arrow())))
            stable = former.num_rows
            former = pa.concat_tables([former, self._rows_of_keys(late, rows, source, is_late=True)])
        both = pa.concat_tables([former.select(rows.column_names), rows])
        found = versions(both, self._key, self._latest.order)
        stays = pc.and_(pc.less(found[NUMBER], stable), pc.is_null(found[VALID_TO.name]))
        goes = np.ones(former.num_rows, bool)
        goes[found[NUMBER].filter(stays).to_numpy()] = False
        places = pl.DataFrame(pl.from_arrow(former.select([FILE, ROW]).filter(pa.array(goes))))
        return KeyMerge(by_file(places), found.filter(pc.invert(stays)).select(table.names).cast(table))

    def _rows_of_keys(self, keys: pl.DataFrame, changes: pa.Table, source: SourceTable, *, is_late: bool) -> pa.Table:
        """Rows of these keys that hold now, or all of them, as changes; with their places."""
        table = self._target.schema
        columns = pa.schema([table.field(name) for name in (*self._key, VALID_TO.name)])
        files = [(n, file) for n, file in enumerate(self._target.files) if is_late or not file.is_closed]
        places = rows_with_keys(files, columns, keys)
        places = places if is_late else places.filter(pl.col(VALID_TO.name).is_null())
        rows = as_changes(rows_at(self._target.files, places, table))
        if is_late and self._latest.deletes == "column":
            kept = pc.if_else(rows[MARKED.name], source.reading.kept_by_deletes(changes), rows[KEPT])
            rows = rows.set_column(rows.column_names.index(KEPT), KEPT, kept)
        return rows.cast(
            pa.schema([changes.schema.field(f.name) if f.name in changes.column_names else f for f in rows.schema])
        )

    def _late(self, former: pa.Table, changes: pa.Table) -> pl.DataFrame:
        """Keys of which a change is older than the row that holds now."""
        both = pa.concat_tables([former.select(changes.column_names), changes])
        of_keys = by_key(ordered(both, self._key, self._latest.order), self._key)
        is_not_first = pl.col(ROW) != pl.col(ROW).first().over(GROUP)
        return of_keys.filter(is_not_first & (pl.col(ROW) < former.num_rows)).select(self._key).unique()

    def _end_erased(self, source: SourceTable, apps: tuple[str, str], done: Materialization) -> None:  # noqa: ARG002
        if self._noted_erased(apps[0]) != count_of(source.erased):
            raise ChangesLostError("records were erased")

    def _rows_kept(self, source: SourceTable) -> Iterator[pa.Table]:  # noqa: ARG002 - a rule with `keep` has no history
        return iter(())

    def _newest_of(
        self, source: SourceTable, tombstones: pa.Table, truncated: list[Truncate], part: tuple[int, int]
    ) -> pa.Table:
        """All rows of a part of the keys."""
        changes = [of_part(rows, self._key, *part) for rows in self._all_changes(source, tombstones, truncated)]
        times = [each.time for each in in_order(truncated)]
        how = self._key, self._latest.order

        def deletes_of(last: pa.Table) -> pa.Table:
            is_there = last.filter(pc.invert(last[MARKED.name])) if self._latest.deletes == "column" else last
            return source.reading.deletes_of(is_there)

        rows = with_truncates(pa.concat_tables(changes), *how, times, deletes_of)
        return versions(rows.drop_columns([TRUNCATED]), *how).select(source.derived.names)
