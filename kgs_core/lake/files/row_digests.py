"""A number of 64 bits for each row, by its values: equal values give equal numbers, in this process."""

from zlib import crc32

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Digests = npt.NDArray[np.uint64]


def row_digests(rows: pa.Table) -> Digests:
    """Digest of each row over all columns; a column that is missing counts as one of nulls."""
    found = np.zeros(rows.num_rows, np.uint64)
    for name in rows.column_names:
        column = pl.Series(pl.from_arrow(rows[name]))
        hashes = column.hash(crc32(name.encode())).to_numpy()  # by the name: a row with two values exchanged is another
        found += np.where(column.is_null().to_numpy(), np.uint64(0), hashes | np.uint64(1))
    return found
