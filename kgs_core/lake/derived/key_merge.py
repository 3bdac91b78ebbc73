"""A merge by key: which former rows go, in which files, and which rows come.

Only the key and what is compared is read of the files; a file whose statistics leave no room for a key is passed over.
Rows alone are compared: nothing is written here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.lake.delta.table_changes import ChangesLostError
from kgs_core.lake.derived.deletion_vectors import Rows
from kgs_core.lake.derived.kept_values import KEPT, ROW
from kgs_core.lake.derived.live_file import LiveFile, bounds_of
from kgs_core.lake.derived.newest_rows import DELETED, ORDERS

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
    keys = changes.select(list(key))
    bounds, sought = bounds_of(keys), pl.DataFrame(pl.from_arrow(keys))
    found = [_numbered(pl.DataFrame(pl.from_arrow(changes.select(names).cast(columns))), _NEW)]
    for number, file in enumerate(files):
        if changes.num_rows and file.may_hold(bounds):
            found.append(rows_with_keys(file, number, columns, sought))
    # What is there comes last: of equals it is the one that is kept
    both = pl.concat(found, how="vertical_relaxed").sort(*ORDERS[order], nulls_last=False, maintain_order=True)
    kept = both.unique(subset=list(key), keep="last", maintain_order=True)
    if marked and _has_older(both, kept.filter((pl.col(FILE) != _NEW) & pl.col(marked)), key, ORDERS[order]):
        raise ChangesLostError("older rows came behind deletes, whose last values they may be")
    coming = np.sort(kept.filter(pl.col(FILE) == _NEW)[ROW].to_numpy())
    lost = both.filter(pl.col(FILE) != _NEW).join(kept.filter(pl.col(FILE) == _NEW), on=list(key), how="inner")
    gone = {
        int(file): np.sort(lost.filter(pl.col(FILE) == file)[ROW].to_numpy()) for file in lost[FILE].unique().sort()
    }
    comes = np.zeros(changes.num_rows, np.bool_)
    comes[coming] = True
    come = changes.filter(pa.array(comes))  # by chunk: to take rows would make one array of all, of at most 2 GB
    if KEPT in come.column_names and come[KEPT].null_count < come.num_rows:
        by_key = lost.select(FILE, ROW, f"{ROW}_right")
        come = _with_kept(come, coming, by_key.rows(), files, table)
    come = come.filter(pc.invert(come[DELETED]))
    return KeyMerge(gone, come.select(table.names).cast(table))


def rows_with_keys(file: LiveFile, number: int, columns: pa.Schema, sought: "pl.DataFrame") -> "pl.DataFrame":
    """Columns of the rows that have these keys and count, with the file's `number` as `FILE` and their own as `ROW`."""
    import polars as pl

    there = _numbered(pl.DataFrame(pl.from_arrow(file.all_rows(columns))), number)
    same = there.join(sought, on=sought.columns, how="semi", maintain_order="left")
    return same.filter(~pl.Series(np.isin(same[ROW].to_numpy(), file.deleted)))


def _numbered(rows: "pl.DataFrame", file: int) -> "pl.DataFrame":
    import polars as pl

    return rows.with_columns(pl.lit(file, pl.Int64).alias(FILE), pl.Series(ROW, np.arange(rows.height, dtype=np.int64)))


def _has_older(both: "pl.DataFrame", deleted: "pl.DataFrame", key: Sequence[str], order: Sequence[str]) -> bool:
    import polars as pl

    pairs = both.filter(pl.col(FILE) == _NEW).join(deleted, on=list(key), how="inner")
    differs = [pl.col(name).ne_missing(pl.col(f"{name}_right")) for name in order if name not in key]
    return bool(differs) and not pairs.filter(pl.any_horizontal(differs)).is_empty()


def _with_kept(
    come: pa.Table, numbers: Rows, lost: Sequence[tuple[int, int, int]], files: Sequence[LiveFile], table: pa.Schema
) -> pa.Table:
    """The changes, with the former rows' values in the columns that keep them; the change's where there was no row."""
    place = {int(number): n for n, number in enumerate(numbers)}
    names = come[KEPT].to_pylist()
    wanted = [(file, row, place[new]) for file, row, new in lost if names[place[new]]]
    by_file: dict[int, list[tuple[int, int]]] = {}
    for file, row, new in wanted:
        by_file.setdefault(file, []).append((row, new))
    former = [files[n].all_rows(table).take(pa.array([row for row, _ in pairs])) for n, pairs in by_file.items()]
    behind = {new: n for n, new in enumerate(new for pairs in by_file.values() for _, new in pairs)}
    columns = []
    for column in come.schema:
        values = come[column.name]
        if column.name in table.names and any(column.name in (kept or ()) for kept in names):
            kind = table.field(column.name).type
            pool = pa.chunked_array(
                [*values.cast(kind).chunks, *(c for t in former for c in t[column.name].chunks)], type=kind
            )
            at = [
                len(come) + behind[n] if n in behind and column.name in (kept or ()) else n
                for n, kept in enumerate(names)
            ]
            values = pool.take(pa.array(at, pa.int64()))
        columns.append(values)
    return pa.table(columns, names=come.column_names)
