"""How late the latest rows of a table really came, for who chooses `lateness_s`. Reads only.

When a record was appended is written nowhere. But all records with lower offsets of its partition were appended before
it: so much earlier than the latest timestamp among these its own is, so late it came at least. In a partition with few
records that says little.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgs_core.lake.files.row_schema import IDENTITY
from kgs_core.lake.rule.completeness import Lateness
from kgs_core.ports import PinnedTable

ROWS = 1_000_000
"""At least so many of the latest rows are looked at, if the table has them."""


def lateness_of(pinned: PinnedTable) -> Lateness | None:
    """Lateness of the latest rows; None: there are none."""
    parts = [pinned.read(name, [*IDENTITY, "_timestamp"]) for name in pinned.newest_files(ROWS)]
    rows = pa.concat_tables(parts).drop_null() if parts else None
    if rows is None or not rows.num_rows:
        return None
    stamps_ms = rows["_timestamp"].cast(pa.int64()).to_numpy() // 1000
    ids = rows["_topic_id"].cast(pa.string()).combine_chunks().dictionary_encode().indices.to_numpy()
    late_ms = late_by(ids, rows["_partition"].to_numpy(), rows["_offset"].to_numpy(), stamps_ms)
    p50, p999, most = np.quantile(late_ms, [0.5, 0.999, 1.0], method="higher") / 1000
    return Lateness(rows.num_rows, int(stamps_ms.min()), float(p50), float(p999), float(most))


def late_by(
    topics: npt.NDArray[np.integer],
    partitions: npt.NDArray[np.integer],
    offsets: npt.NDArray[np.integer],
    stamps_ms: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """How much later each record has come than its timestamp, at least, ms; in the order of partitions and offsets."""
    order = np.lexsort((offsets, partitions, topics))
    topics, partitions, stamps_ms = topics[order], partitions[order], stamps_ms[order]
    begins = np.concatenate([[False], (topics[1:] != topics[:-1]) | (partitions[1:] != partitions[:-1])])
    # Each partition's times lie above all of the one before, so that one running maximum does for all
    lifted = stamps_ms - stamps_ms.min() + np.cumsum(begins) * (int(np.ptp(stamps_ms)) + 1)
    return np.asarray(np.maximum.accumulate(lifted) - lifted)
