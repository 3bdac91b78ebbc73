"""Records that a person ends: rows by their key in Kafka, or by a condition, everywhere in the lake."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.config import Settings, TableSpec
from kgs_core.config.rule.masking import NULL
from kgs_core.errors import ConfigError, PortError, TransientError, one_line
from kgs_core.ingest.worker.masks import masks_of
from kgs_core.lake.derived.history import derived_table
from kgs_core.lake.files.places import Places, both, count_of, joined, offsets_of, without
from kgs_core.lake.files.row_schema import IDENTITY
from kgs_core.lake.topics.discovery import UnreadTable, find_tables, refuse_unknown
from kgs_core.lake.topics.ending import ERASE, KEEP, end_records, row_tables, settled
from kgs_core.lake.topics.factory import open_lake
from kgs_core.ports import PinnedTable, RowsRemoved

if TYPE_CHECKING:
    import polars as pl

ROUNDS = 20
"""Looks for what came while others were removed."""


@dataclass(slots=True)
class Erasure:
    """What was erased, or would be.

    Attributes:
        found: table -> rows that were found at the last look, dead letters among them.
        records: of Kafka that ended, or would end.
        unsettled: records at or above the position, which are read again: they stay.
        removed: what went, by table.
        not_looked_at: tables that lack a column of the condition.
        newest: derived table that was brought up to date; None: there is none.
        vacuumed: files that were removed from the store at once.
        gone_at: when the files that had the rows are removed from the store, by the first upkeep after that; None: they
            are gone.
    """

    table: str
    found: dict[str, int] = field(default_factory=dict)
    records: int = 0
    unsettled: int = 0
    removed: list[RowsRemoved] = field(default_factory=list)
    not_looked_at: list[str] = field(default_factory=list)
    newest: str | None = None
    vacuumed: int = 0
    gone_at: datetime | None = None


class Eraser:
    """Erases records from one table, its side tables, dead letters and derived table."""

    def __init__(
        self,
        settings: Settings,
        table: str,
        *,
        keys: Collection[str] = (),
        where: str | None = None,
        advance: Callable[[float, float], None] = lambda *_: None,
    ) -> None:
        """The records are those with one of these keys in Kafka, as text, or those whose rows fulfil an SQL condition.

        `advance` is told how many files of a table were looked at, and how many there are.

        Raises:
            ConfigError: no topic fills such a table, it is no condition, or the rule hides all keys.
            PortError: the lake did not answer.
        """
        self._settings = settings
        self._lake = open_lake(settings.lake)
        unread: list[UnreadTable] = []
        specs = find_tables(settings, self._lake, (), None, unread)
        self._specs = [spec for spec in specs if spec.table == table]
        if not self._specs:
            refuse_unknown(unread)
            raise ConfigError([f"table {table}: no topic fills it: name the own table of a topic, see 'topics'"])
        self._keys = _keys_in(self._specs[0], [key.encode() for key in keys])
        self._where = None if where is None else _condition(where)
        self._names = ["_key"] if self._where is None else sorted(set(self._where.meta.root_names()))
        self._advance = advance
        self._done = Erasure(table)

    def look(self) -> Erasure:
        """What would be erased; changes nothing.

        Raises:
            ConfigError: the condition cannot be judged.
            PortError: the lake did not answer.
        """
        self._done.records = count_of(self._find())
        return self._done

    def run(self, *, now: bool = False) -> Erasure:
        """Erase. May be killed, run again, and run beside consumers and upkeep.

        Args:
            now: also remove from the store at once the files that are replaced.

        Raises:
            ConfigError: the condition cannot be judged.
            PortError: run it again.
        """
        spec, done = self._specs[0], self._done
        for number in range(ROUNDS):
            places = without(self._find(), self._noted())
            if number and not places:
                break
            done.records += count_of(places)
            done.removed += end_records(self._lake, self._settings.group, self._specs, ERASE, places, self._renew)
        else:
            raise TransientError(f"table {done.table}: more and more records arrive that are meant: run it again")
        tables = [*self._row_tables(), spec.dead_letters_table, *(spec.derived_tables if done.newest else ())]
        if now:
            if done.newest:  # they are at a version whose files go
                self._renew()
            done.vacuumed = sum(self._lake.vacuum_replaced(name) for name in tables)
        else:
            done.gone_at = datetime.now(UTC) + timedelta(hours=max(map(self._lake.kept_h, tables)))
        return done

    def _row_tables(self) -> tuple[str, ...]:
        return row_tables(self._lake, self._settings.group, self._specs)

    def _renew(self) -> None:
        for name in self._specs[0].derived_tables:
            derived_table(self._settings, self._specs[0], name).materialize()
        self._done.newest = self._specs[0].latest_table

    def _noted(self) -> Places:
        return self._lake.ended(self._specs[0].table).get(ERASE, {})

    def _find(self) -> Places:
        """Places of the settled records that are meant, as of now."""
        own = self._specs[0].table
        stored = self._lake.all_versions(own)
        parts = [self._matching(name) for name in (*self._row_tables(), self._specs[0].dead_letters_table)]
        every = joined(*parts, self._only_newest(joined(*parts)))
        places = settled(every, self._settings.group, stored)
        self._done.unsettled = count_of(every) - count_of(places)
        return places

    def _only_newest(self, others: Places) -> Places:
        """Of the newest rows, those whose records `keep` has ended."""
        name = self._specs[0].latest_table
        table = None if name is None else self._lake.pin(name)
        if name is None or table is None or not set(self._names) <= set(table.schema.names):
            return {}
        ended = self._lake.ended(self._specs[0].table)
        kept = without(both(ended.get(KEEP, {}), self._matching(name)), others)
        self._done.found[name] = count_of(without(kept, ended.get(ERASE, {})))
        if not self._done.found[name]:
            del self._done.found[name]
        return kept

    def _matching(self, name: str) -> Places:
        try:
            table = self._lake.pin(name)
            if table is None:
                return {}
            if not set(self._names) <= set(table.schema.names):
                self._done.not_looked_at = [*dict.fromkeys([*self._done.not_looked_at, name])]
                return {}
            found = list(self._chosen(table))
        except (PortError, ConfigError):
            raise
        except Exception as e:
            raise TransientError(f"table {name}: cannot be read: {one_line(e)}: run it again") from e
        rows = sum(part.num_rows for part in found)
        self._done.found[name] = rows
        return joined(*map(offsets_of, found))

    def _chosen(self, table: PinnedTable) -> Iterator[pa.Table]:
        names = [*dict.fromkeys([*IDENTITY, *self._names])]
        files = table.files()
        for number, file in enumerate(files):
            self._advance(number, len(files))
            rows = table.read(file, names)
            yield rows.filter(self._is_meant(rows.cast(_types(table.schema, names)))).select(list(IDENTITY))

    def _is_meant(self, rows: pa.Table) -> pa.ChunkedArray:
        if self._where is None:
            return pc.is_in(rows["_key"].cast(pa.binary()), value_set=self._keys)
        import polars as pl

        try:
            judged = pl.DataFrame(pl.from_arrow(rows)).select(self._where.alias("is meant"))
            meant = judged["is meant"].to_numpy() if judged.height else np.zeros(0, np.bool_)
        except pl.exceptions.PolarsError as e:
            raise ConfigError([f"--where: {one_line(e)}"]) from e
        if judged.schema["is meant"] != pl.Boolean or len(meant) != rows.num_rows:
            raise ConfigError(["--where: is true or false of no row: write a comparison, as amount > 100"])
        return pa.array(meant.astype(object) == True)  # noqa: E712 - null is no match


def _types(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _condition(text: str) -> "pl.Expr":
    import polars as pl

    try:
        found: Any = pl.sql_expr(text)
    except pl.exceptions.PolarsError as e:
        raise ConfigError([f"--where: {one_line(e)}: write an SQL condition, as customer = 'c-17'"]) from e
    if not found.meta.root_names():
        raise ConfigError(["--where: names no column: write an SQL condition, as customer = 'c-17'"])
    return found  # type: ignore[no-any-return]


def _keys_in(spec: TableSpec, keys: Sequence[bytes]) -> pa.Array:
    """Keys as tables have them: masked, and of rows from before the mask in clear."""
    if keys and spec.rule.mask.get("_key") == NULL:
        raise ConfigError([f"table {spec.table}: its rule has mask: _key: null, so no row has a key: give --where"])
    clear = pa.array(keys, pa.binary())
    masked = masks_of(spec).masked(pa.table({"_key": clear}))
    return pa.concat_arrays([clear, masked["_key"].combine_chunks()])
