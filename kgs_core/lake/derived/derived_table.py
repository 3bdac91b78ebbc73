"""The Delta table of newest rows: a merge, or all of it anew, in one commit with the position that it was read to.

The position is a version of the log of the table that it is derived from, kept as a `txn` action. Its application id
names that table by Delta's id, and the rule by which rows are chosen: with another table under the name, or another
rule, there is no position, and the derived table is made anew. Two that do the same at once cannot both succeed: both
commits hold the same application id, and Delta refuses the second.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import UnsafeError
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.delta.delta_optimize import has_long_decimals
from kgs_core.lake.delta.table_properties import wanted_properties
from kgs_core.lake.derived.kept_values import KEPT
from kgs_core.lake.derived.newest_rows import DELETED, is_newer
from kgs_core.lake.files.columns import plain
from kgs_core.lake.files.storage import Storage

MARK = "kgs/latest/"
"""What application ids of positions begin with."""
_NOT_THERE = -1
_DESCRIPTION = "newest row of each key of "
_STATISTICS, _NO_COLUMN = "delta.dataSkippingNumIndexedCols", "0"


class DerivedTable:
    """A handle at one version of the derived table. What deltalake raises passes through."""

    def __init__(self, storage: Storage, name: str, source: str, lake: LakeSettings) -> None:
        self.name = name
        self._source = source  # the table that it is derived from
        self._storage = storage
        self._lake = lake
        self._handle: DeltaTable | None = None

    def load(self, schema: pa.Schema) -> None:
        """Look at the table as it is now; it is made if it is not there.

        Raises:
            UnsafeError: something else than kgs has made it.
        """
        uri, options = self._storage.uri(self.name), self._storage.delta_options()
        try:
            self._handle = DeltaTable(uri, storage_options=options)
        except TableNotFoundError:
            properties = wanted_properties(self._lake.checkpoint_interval, self._lake.log_retention_h)
            properties.pop("delta.appendOnly")
            DeltaTable.create(
                uri,
                schema=schema,
                mode="ignore",
                description=f"{_DESCRIPTION}{self._source}",
                configuration=properties,
                storage_options=options,
            )
            self._handle = DeltaTable(uri, storage_options=options)
        # deltalake rounds bounds of long decimals, and readers would pass over rows
        if has_long_decimals(schema) and self._handle.metadata().configuration.get(_STATISTICS) != _NO_COLUMN:
            self._handle.alter.set_table_properties({_STATISTICS: _NO_COLUMN})
            self._handle = DeltaTable(uri, storage_options=options)
        described = self._handle.metadata().description or ""
        if described.startswith(_DESCRIPTION) and described != f"{_DESCRIPTION}{self._source}":
            raise UnsafeError(
                f"table {self.name}: has the {described}, not of {self._source}: name another table, or delete this one"
            )
        is_empty = not pa.table(self._handle.get_add_actions()).num_rows
        if not is_empty and not any(app.startswith(MARK) for app in load_transactions(self._storage, self.name)):
            raise UnsafeError(f"table {self.name}: exists and is not a derived table of kgs: name another one")

    def position(self, app: str) -> int | None:
        """Version stored under an application id; None: none, or one that no longer counts."""
        found = self._loaded.transaction_version(app)
        return None if found is None or found < 0 else found

    def has_columns(self, schema: pa.Schema) -> bool:
        """Whether it has these columns."""
        there = pa.schema(self._loaded.schema())
        return there.names == schema.names and [*map(plain, there.types)] == [*map(plain, schema.types)]

    def move(self, positions: Mapping[str, int]) -> None:
        """Note that there was nothing to merge up to new positions."""
        self._loaded.create_write_transaction([], "append", self._loaded.schema(), commit_properties=_commit(positions))

    def replace(self, rows: pa.Table, positions: Mapping[str, int]) -> None:
        """All of it anew; what other rules have noted no longer counts: a rule may come back."""
        noted = (app for app in load_transactions(self._storage, self.name) if app.startswith(MARK))
        every = {**dict.fromkeys(noted, _NOT_THERE), **positions}
        write_deltalake(self._loaded, rows, mode="overwrite", schema_mode="overwrite", commit_properties=_commit(every))

    def merge(self, rows: pa.Table, key: Sequence[str], order: str, positions: Mapping[str, int]) -> None:
        """Merge rows that have each key once.

        Args:
            rows: the table's columns, whether the key is to go, and which columns keep the value that is there.
            positions: application id -> version afterwards.
        """
        columns = {f"`{name}`": f"s.`{name}`" for name in rows.column_names if name not in (DELETED, KEPT)}
        names = pc.unique(pc.list_flatten(rows[KEPT])).to_pylist()
        kept = {
            f"`{name}`": f"CASE WHEN array_has(s.`{KEPT}`, '{name.replace(chr(39), chr(39) * 2)}') THEN t.`{name}` "
            f"ELSE s.`{name}` END"
            for name in names
        }
        rows = rows if names else rows.drop_columns([KEPT])
        newer = is_newer(order)
        (
            self._loaded.merge(
                rows,
                predicate=" AND ".join(f"t.`{name}` = s.`{name}`" for name in key),
                source_alias="s",
                target_alias="t",
                commit_properties=_commit(positions),
            )
            .when_matched_delete(f"s.`{DELETED}` AND {newer}")
            .when_matched_update({**columns, **kept}, predicate=newer)
            .when_not_matched_insert(columns, predicate=f"NOT s.`{DELETED}`")
            .execute()
        )

    @property
    def _loaded(self) -> DeltaTable:
        if self._handle is None:
            raise RuntimeError("load() first")
        return self._handle


def _commit(positions: Mapping[str, int]) -> CommitProperties:
    """No try at another version: what is judged as of one version is committed right behind it, or not at all."""
    return CommitProperties(
        app_transactions=[Transaction(app, version) for app, version in positions.items()], max_commit_retries=0
    )
