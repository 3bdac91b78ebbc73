"""Routing of rows to tables by the value of the route's column, which depends on the row alone."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.config import TopicRule


def routed(rule: TopicRule, sides: Mapping[str, str], rows: pa.Table) -> tuple[pa.Table, dict[str, pa.Table]]:
    """Rows of the rule's own table, and those of each side table that has any.

    `sides`: value as text -> path of its side table.
    """
    if rule.route is None or not rows.num_rows:
        return rows, {}
    names = list(dict.fromkeys(sides.values()))
    texts = rows[rule.route.column].cast(pa.string())
    places = pc.index_in(texts, pa.array(list(sides), pa.string())).combine_chunks()
    tables = np.array([names.index(name) for name in sides.values()], np.int64)
    found = np.full(rows.num_rows, -1, np.int64)
    is_side = places.is_valid().to_numpy(zero_copy_only=False)
    found[is_side] = tables[places.drop_null().to_numpy()]
    parts = {name: rows.filter(pa.array(found == n)) for n, name in enumerate(names)}
    return rows.filter(pa.array(~is_side)), {name: part for name, part in parts.items() if part.num_rows}


def unwritten(rows: pa.Table, marks: Mapping[int, int | None]) -> pa.Table:
    """Rows of a side table that it does not have yet."""
    partitions, offsets = rows["_partition"].to_numpy(), rows["_offset"].to_numpy()
    is_there: npt.NDArray[np.bool_] = np.zeros(rows.num_rows, np.bool_)
    for partition, mark in marks.items():
        is_there |= (partitions == partition) & (offsets < (mark or 0))
    return rows.filter(pa.array(~is_there)) if is_there.any() else rows
