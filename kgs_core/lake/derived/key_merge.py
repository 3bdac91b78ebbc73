"""A merge by key: which former rows go, in which files, and which rows come.

Of the files only the key and what is compared is read, and rows of which a change keeps values; a file whose statistics
leave no room for a key is passed over. Rows alone are compared: nothing is written here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.lake.delta.table_changes import ChangesLostError
from kgs_core.lake.derived.deletion_vectors import Rows
from kgs_core.lake.derived.kept_values import KEPT, ROW, with_kept_values
from kgs_core.lake.derived.live_file import LiveFile, bounds_of
from kgs_core.lake.derived.newest_rows import DELETED, ORDERS, as_changes, has_key, may_keep, ordered
from kgs_core.lake.files.places import Places, is_among
from kgs_core.lake.files.row_schema import IDENTITY

if TYPE_CHECKING:
    import polars as pl

FILE = "number of the file"
_NEW = -1


@dataclass(frozen=True, slots=True)
class KeyMerge:
    """What a merge does.

    Attributes:
        gone: number of a file -> numbers of its rows, sorted, that go.
        rows: that come, in the table's columns.
    """

    gone: Mapping[int, Rows]
    rows: pa.Table


def key_merge(
    files: Sequence[LiveFile], changes: pa.Table, key: Sequence[str], order: str, table: pa.Schema, *, marked: str = ""
) -> KeyMerge:
    """Compare changes with the rows of the same key; the newer stays, of equals the former.

    Args:
        changes: each key once; columns of the table, `DELETED`, and `KEPT` where columns may keep their former values.
        marked: column that tells of a row that it was deleted; empty: such rows do not stay.

    Raises:
        ChangesLostError: a change is older than a deleted row, which would have its values if both had come in order.
    """
    import polars as pl

    names = [*dict.fromkeys([*key, *ORDERS[order], *filter(None, [marked])])]
    columns = pa.schema([table.field(name) for name in names])
    there = rows_with_keys(enumerate(files), columns, pl.DataFrame(pl.from_arrow(changes.select(list(key)))))
    found = [_numbered(changes.select(names).cast(columns), _NEW), there]
    # What is there comes last: of equals it is the one that is kept
    both = pl.concat(found, how="vertical_relaxed").sort(*ORDERS[order], nulls_last=False, maintain_order=True)
    kept = both.unique(subset=list(key), keep="last", maintain_order=True)
    if marked and _has_older(both, kept.filter((pl.col(FILE) != _NEW) & pl.col(marked)), key, ORDERS[order]):
        raise ChangesLostError("older rows came behind deletes, whose last values they may be")
    coming = np.sort(kept.filter(pl.col(FILE) == _NEW)[ROW].to_numpy())
    lost = both.filter(pl.col(FILE) != _NEW).join(kept.filter(pl.col(FILE) == _NEW), on=list(key), how="inner")
    comes = np.zeros(changes.num_rows, np.bool_)
    comes[coming] = True
    come = changes.filter(pa.array(comes))  # by chunk: to take rows would make one array of all, of at most 2 GB
    if may_keep(come):
        keeping = coming[np.asarray(pc.list_value_length(come[KEPT]).fill_null(0)) > 0]
        givers = rows_at(files, lost.filter(pl.col(f"{ROW}_right").is_in(keeping)), table)
        former = as_changes(givers.select(table.names))
        whole = pa.concat_tables([former, come.select(former.column_names).cast(former.schema)])
        come = with_kept_values(whole, ordered(whole, key, order), key).slice(former.num_rows)
    come = come.filter(pc.invert(come[DELETED]))
    return KeyMerge(by_file(lost), come.select(table.names).cast(table))


def by_file(places: "pl.DataFrame") -> dict[int, Rows]:
    """Number of a file -> numbers of its rows, sorted."""
    return {int(file): np.sort(rows[ROW].to_numpy()) for (file,), rows in places.group_by(FILE)}


def rows_with_keys(files: Iterable[tuple[int, LiveFile]], columns: pa.Schema, keys: "pl.DataFrame") -> "pl.DataFrame":
    """Columns of the rows that have these keys and count, and where: numbers of file and row (`FILE`, `ROW`)."""
    import polars as pl

    bounds, found = bounds_of(keys.to_arrow()), [_numbered(columns.empty_table(), _NEW)]
    for number, file in files:
        if keys.height and file.may_hold(bounds):
            there = _numbered(file.all_rows(columns), number)
            same = there.join(keys, on=keys.columns, how="semi", maintain_order="left")
            found.append(same.filter(~pl.Series(np.isin(same[ROW].to_numpy(), file.deleted))))
    return pl.concat(found)


def rows_of(files: Sequence[LiveFile], keys: pa.Table, places: Places, table: pa.Schema) -> dict[int, Rows]:
    """Number of a file -> numbers of its rows that have one of these keys, or are at one of these places.

    Also of those that no longer count, which are still in the store.
    """
    names = [*dict.fromkeys([*IDENTITY, *keys.column_names])]
    read = (file.all_rows(pa.schema([table.field(name) for name in names])) for file in files)
    found = {n: np.flatnonzero(is_among(rows, places) | has_key(rows, keys)) for n, rows in enumerate(read)}
    return {n: rows for n, rows in found.items() if len(rows)}


def rows_at(files: Sequence[LiveFile], places: "pl.DataFrame", table: pa.Schema) -> pa.Table:
    """All columns of the rows at these places (`FILE`, `ROW`), and beside them the places."""
    found = [pa.schema([*table, (FILE, pa.int64()), (ROW, pa.int64())]).empty_table()]
    for (number,), here in places.group_by(FILE):
        rows = files[int(number)].all_rows(table).take(here[ROW].to_arrow())
        found.append(rows.append_column(FILE, here[FILE].to_arrow()).append_column(ROW, here[ROW].to_arrow()))
    return pa.concat_tables(found)


def _numbered(rows: pa.Table, file: int) -> "pl.DataFrame":
    import polars as pl

    numbers = pl.Series(ROW, np.arange(rows.num_rows, dtype=np.int64))
    return pl.DataFrame(pl.from_arrow(rows)).with_columns(pl.lit(file, pl.Int64).alias(FILE), numbers)


def _has_older(both: "pl.DataFrame", deleted: "pl.DataFrame", key: Sequence[str], order: Sequence[str]) -> bool:
    import polars as pl

    pairs = both.filter(pl.col(FILE) == _NEW).join(deleted, on=list(key), how="inner")
    differs = [pl.col(name).ne_missing(pl.col(f"{name}_right")) for name in order if name not in key]
    return bool(differs) and not pairs.filter(pl.any_horizontal(differs)).is_empty()
