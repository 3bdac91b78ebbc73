"""The history of each key: every change of it is a row, which holds from its time until that of the next one.

A change holds from the time that its source says, but never from before the change that it follows: so no two rows of
a key hold at once, whatever clocks say and however often a producer repeats itself. A deleted key begins anew. A change
of the same time and values as the one before it is that one, delivered again.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.errors import UnsafeError
from kgs_core.lake.derived.kept_values import GROUP, KEPT, ROW, by_key, with_kept_values
from kgs_core.lake.derived.newest_rows import DELETED, may_keep, ordered
from kgs_core.lake.files.row_digests import row_digests
from kgs_core.lake.files.row_schema import IDENTITY, TIMESTAMP

VALID_FROM, VALID_TO = pa.field("_valid_from", TIMESTAMP), pa.field("_valid_to", TIMESTAMP)
"""Columns of a history; a row holds now where the second is null."""
TRUNCATED, NOT_TRUNCATED = "number of the truncate", -1
"""Column beside those of a history: the first truncate behind the change."""
NUMBER, _LIFE = "number of the change", "number of the key's life"
_NO_VALUES = (*IDENTITY, "_timestamp", "_headers", VALID_FROM.name, KEPT, TRUNCATED)


def versions(changes: pa.Table, key: Sequence[str], order: str) -> pa.Table:
    """The rows of the history of some keys, which are all in it from a first change on; in no order.

    Args:
        changes: columns of the history but `VALID_TO`, `DELETED` and `KEPT`; of equals the former comes first.

    Returns:
        The changes that are rows, with `VALID_TO` and `NUMBER`, which is that of the change.

    Raises:
        UnsafeError: a change has no time.
    """
    import polars as pl

    _require_times(changes)
    of_keys = by_key(ordered(changes, key, order, [DELETED, VALID_FROM.name]), key)
    gone = of_keys[DELETED].to_numpy()
    of_keys = of_keys.with_columns(pl.Series(_LIFE, np.cumsum(gone) - gone))
    if may_keep(changes):  # not from before a delete
        changes = with_kept_values(changes, of_keys.select(ROW, *key, _LIFE), [*key, _LIFE])
    of_keys = of_keys.with_columns(pl.col(VALID_FROM.name).cum_max().over(GROUP, _LIFE))
    values = changes.select([name for name in changes.column_names if name not in _NO_VALUES])
    digests = row_digests(values)[of_keys[ROW].to_numpy()]
    of_keys = of_keys.with_columns(pl.Series("digest", digests))
    same = pl.all_horizontal(
        *(pl.col(name).eq_missing(pl.col(name).shift()) for name in (GROUP, _LIFE, VALID_FROM.name, "digest"))
    )
    of_keys = of_keys.filter(~same if of_keys.height else pl.lit(value=True))
    following = pl.col(VALID_FROM.name).shift(-1).over(GROUP)
    rows = of_keys.with_columns(following.alias(VALID_TO.name)).filter(~pl.col(DELETED)).sort(ROW)
    numbers = rows[ROW].to_numpy()
    is_row = np.zeros(changes.num_rows, bool)
    is_row[numbers] = True
    found = changes.filter(pa.array(is_row))
    for field in (VALID_FROM, VALID_TO):
        column = rows[field.name].to_arrow().cast(TIMESTAMP)
        at = found.column_names.index(field.name) if field.name in found.column_names else found.num_columns
        found = found.append_column(field, column) if at == found.num_columns else found.set_column(at, field, column)
    return found.append_column(NUMBER, pa.array(numbers.astype(np.int64)))


def with_truncates(
    changes: pa.Table,
    key: Sequence[str],
    order: str,
    times: Sequence[datetime | None],
    deletes_of: Callable[[pa.Table], pa.Table],
) -> pa.Table:
    """The changes, and a delete behind the last change of each key that a truncate came behind.

    Args:
        times: of the truncates that `TRUNCATED` numbers.
    """
    if not times:
        return changes
    of_keys = by_key(ordered(changes, key, order, [TRUNCATED]), key)
    truncate, group = of_keys[TRUNCATED].to_numpy(), of_keys[GROUP].to_numpy()
    is_last = np.ones(len(group), bool)
    is_last[:-1] = (group[1:] != group[:-1]) | (truncate[1:] != truncate[:-1])
    chosen = is_last & (truncate != NOT_TRUNCATED)
    copies = changes.take(pa.array(of_keys[ROW].to_numpy()[chosen]))
    at = copies.column_names.index(VALID_FROM.name)
    of_truncate = pa.array(times, TIMESTAMP).take(pa.array(truncate[chosen]))
    return pa.concat_tables([changes, deletes_of(copies.set_column(at, VALID_FROM, of_truncate))])


def _require_times(changes: pa.Table) -> None:
    if not changes[VALID_FROM.name].null_count:
        return
    first = changes.filter(pc.is_null(changes[VALID_FROM.name])).select(list(IDENTITY)).slice(0, 1).to_pylist()[0]
    raise UnsafeError(
        f"newest_rows: history: partition {first['_partition']}, offset {first['_offset']}: neither the event nor its "
        "record says when it was, so not since when it holds: drop history"
    )
