"""Proof of a derived table: the newest row of each key, found in another way, of its source as of its own position.

Nothing of the merge is used: the source's rows, all of them, are sorted and grouped; the derived table is read by
deltalake, deletion vectors included. Keys are compared by value, other columns by digests of whole rows. Memory holds
keys and digests of a part of the keys.
"""

from collections.abc import Iterator, Mapping

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from kgs_core.config import Settings, TableSpec
from kgs_core.errors import one_line
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.delta.whole_table import opened_table
from kgs_core.lake.derived.history import HistoryTable
from kgs_core.lake.derived.latest_by_key import ERASED, TRIES, LatestByKeyTable
from kgs_core.lake.derived.newest_rows import DELETED, ORDERS, of_part
from kgs_core.lake.derived.source_table import SourceTable
from kgs_core.lake.derived.tombstones import none_of, waiting_from
from kgs_core.lake.files.columns import plain
from kgs_core.lake.files.places import PartitionKey, Runs, count_of
from kgs_core.lake.files.row_digests import row_digests
from kgs_core.lake.files.row_schema import IDENTITY
from kgs_core.lake.rule import DerivedAudit

DIGEST = "digest of the row"
PART_BYTES = 1_000_000_000
"""Compressed bytes of source of whose keys one part is made."""


def prove(settings: Settings, spec: TableSpec) -> list[DerivedAudit]:
    """What is wrong with the derived tables of a topic's table. Changes nothing; may run beside consumers."""
    tables = [_Proof(settings, spec), *([_HistoryProof(settings, spec)] if spec.history_table is not None else [])]
    found = []
    for table in tables:
        try:
            found.append(table.prove())
        except Exception as e:  # noqa: BLE001 - of the store, of deltalake, or a version cleaned away: not proven
            found.append(DerivedAudit(table.name, spec.table, problem=one_line(e)))
    return found


class _Proof(LatestByKeyTable):
    """The derived table with what it was made of."""

    def prove(self) -> DerivedAudit:
        """See `prove`.

        Raises:
            Exception: something could not be read.
        """
        rows_now = opened_table(self._storage, self._spec.table)
        if rows_now is None or opened_table(self._storage, self.name) is None:
            return DerivedAudit(self.name, self._spec.table)
        derived, noted = self._pinned()
        version = noted.get(self._app(rows_now), -1)
        if version < 0:
            problem = "not made by the rule as it is now: run kgs materialize"
            return DerivedAudit(self.name, self._spec.table, problem=problem)
        then = DeltaTable(rows_now.table_uri, version=version, storage_options=self._storage.delta_options())
        source = self._source(then)
        if max(noted.get(f"{self._app(rows_now)}{ERASED}", 0), 0) != count_of(source.erased):
            problem = "records were erased since it was made: run kgs materialize"
            return DerivedAudit(self.name, self._spec.table, problem=problem)
        try:
            return self._judged(source, derived, noted)
        except Exception as e:
            if version == rows_now.version():
                raise
            cure = f"its source's version {version} may be cleaned away: run kgs materialize"
            raise RuntimeError(f"{one_line(e)}: {cure}") from e

    def _judged(self, source: SourceTable, derived: DeltaTable, noted: Mapping[str, int]) -> DerivedAudit:
        then = source.rows
        schema = pa.schema([pa.field(f.name, plain(f.type)) for f in source.derived])
        self._derived = derived, schema
        tombstones, truncated = self._tombstones(noted, source), source.truncated()
        parts = 1 + sum(pa.table(then.get_add_actions())["size_bytes"].to_pylist()) // PART_BYTES
        missing = extra = differing = rows = 0
        for part in range(parts):
            if self._latest.changes is None and self._latest.deletes != "column" and not self._is_history:
                expected = self._expected(source, tombstones, schema, (part, parts))
            else:  # rows keep values of others: as it would be made anew
                expected = self._digests(self._newest_of(source, tombstones, truncated, (part, parts)), schema)
            found = self._found(derived, schema, (part, parts))
            rows += found.height
            counts = self._compared(expected, found, source)
            missing, extra, differing = missing + counts[0], extra + counts[1], differing + counts[2]
        return DerivedAudit(self.name, self._spec.table, then.version(), rows, missing, extra, differing)

    def _compared(self, expected: pl.DataFrame, found: pl.DataFrame, source: SourceTable) -> tuple[int, int, int]:
        """How many keys are missing, and rows extra, and rows different."""
        once, key = found.unique(self._key), list(self._key)
        extra = once.join(expected, on=key, how="anti").height + found.height - once.height
        both = expected.join(once, on=key, how="inner")
        differing = both.filter(pl.col(DIGEST) != pl.col(f"{DIGEST}_right")).height
        return _not_deleted(expected.join(once, on=key, how="anti"), source.kept), extra, differing

    def _pinned(self) -> tuple[DeltaTable, Mapping[str, int]]:
        """The derived table and all that it notes, as of one version; consumers may merge meanwhile."""
        for _ in range(TRIES):
            noted = load_transactions(self._storage, self.name)
            derived = DeltaTable(self._storage.uri(self.name), storage_options=self._storage.delta_options())
            if noted == load_transactions(self._storage, self.name):
                return derived, noted
        raise RuntimeError("it was changed while it was read: audit again")

    def _expected(
        self, source: SourceTable, tombstones: pa.Table, schema: pa.Schema, part: tuple[int, int]
    ) -> pl.DataFrame:
        """Key and digest of the newest row of each key of a part, by sorting and grouping."""
        key, order = list(self._key), ORDERS[self._latest.order]
        kept: pl.DataFrame | None = None
        for changes in self._all_changes(source, tombstones, []):
            mine = of_part(changes, key, *part)
            columns = [*dict.fromkeys([*self._columns, *order, DELETED])]
            digests = pl.Series(DIGEST, row_digests(mine.select(schema.names).cast(schema)))
            read = pl.DataFrame(pl.from_arrow(mine.select(columns))).with_columns(digests).drop_nulls(key)
            both = read if kept is None else pl.concat([kept, read])
            ordered = both.sort(*order, nulls_last=False, maintain_order=True)
            kept = ordered.group_by(key).agg(pl.exclude(key).last()).select(both.columns)
        if kept is None:
            raise RuntimeError("no rows")
        alive = kept if self._latest.deletes == "ignore" else kept.filter(~pl.col(DELETED))
        return alive.select(*self._columns, DIGEST)

    def _found(self, derived: DeltaTable, schema: pa.Schema, part: tuple[int, int]) -> pl.DataFrame:
        """Key and digest of each row that a reader finds."""
        read = (of_part(rows, self._key, *part) for rows in rows_as_read(derived, schema))
        return pl.concat([self._digests(rows, schema) for rows in (schema.empty_table(), *read)])

    def _digests(self, rows: pa.Table, schema: pa.Schema) -> pl.DataFrame:
        rows = rows.select(schema.names).cast(schema)
        keys = pl.DataFrame(pl.from_arrow(rows.select(self._columns)))
        return keys.with_columns(pl.Series(DIGEST, row_digests(rows), pl.UInt64))

    def _tombstones(self, noted: Mapping[str, int], source: SourceTable) -> pa.Table:
        """Those that were merged by the position."""
        letters = opened_table(self._storage, self._spec.dead_letters_table)
        if letters is None or noted.get(app := self._app(letters), -1) < 0:
            return none_of(source.schema)
        letters.load_as_version(noted[app])
        return source.tombstones_below(letters, waiting_from(app, noted))

    def _source(self, then: DeltaTable) -> SourceTable:
        source = SourceTable(self._storage, self._spec, then, None, self._positions(), {}, is_history=self._is_history)
        source.know_erased()
        source.know_kept()
        source.former_gives = bool(source.kept)
        return source

    def _former(self) -> Iterator[pa.Table]:
        return rows_as_read(*self._derived)

    @property
    def _columns(self) -> list[str]:
        return [*dict.fromkeys([*self._key, *IDENTITY])]


class _HistoryProof(_Proof, HistoryTable):
    """Of a history, which has many rows of a key: all of them, made at once, are compared with what merges made."""

    def _compared(self, expected: pl.DataFrame, found: pl.DataFrame, source: SourceTable) -> tuple[int, int, int]:  # noqa: ARG002
        counts = [rows.group_by(*self._key, DIGEST).len() for rows in (expected, found)]
        both = counts[0].join(counts[1], on=[*self._key, DIGEST], how="full", suffix=" found").fill_null(0)
        more = both["len"].cast(pl.Int64) - both["len found"].cast(pl.Int64)
        return int(more.clip(lower_bound=0).sum()), int((-more).clip(lower_bound=0).sum()), 0


def rows_as_read(derived: DeltaTable, schema: pa.Schema) -> Iterator[pa.Table]:
    """Rows as a reader finds them."""
    for batch in QueryBuilder().register("t", derived).execute("select * from t"):
        yield pa.table(batch).select(schema.names).cast(schema)


def _not_deleted(rows: pl.DataFrame, ended: Mapping[PartitionKey, Runs]) -> int:
    """How many rows have no ended record behind them in their partition, which may have deleted their key."""
    last = {(str(key.topic_id), key.partition): int(run[1][-1]) for key, run in ended.items()}
    return sum(last.get((topic_id, partition), -1) < offset for topic_id, partition, offset in _places(rows))


def _places(rows: pl.DataFrame) -> Iterator[tuple[str, int, int]]:
    return rows.select(*IDENTITY).iter_rows()
