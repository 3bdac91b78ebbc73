"""Places of rows: the record of Kafka that each was made of."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.lake.files.row_schema import IDENTITY
from kgs_core.lake.rule import Offsets
from kgs_core.model import OffsetRange, TopicId
from kgs_core.ports import PinnedTable

READ_THREADS = 4
NAMELESS = -1  # partition of a row that does not say which


class PartitionKey(NamedTuple):
    """One partition of one life of a topic."""

    topic_id: TopicId
    partition: int


Places = Mapping[PartitionKey, Offsets]
"""Offsets by partition; ascending and each once, except where they are said to be in no order."""


Runs = tuple[Offsets, Offsets]
"""First and last offset of each of some runs, ascending and apart."""


def offsets_in(table: PinnedTable | None, within: OffsetRange | None = None) -> dict[PartitionKey, Offsets]:
    """Offsets of all rows, in no order, read file by file; of all that lie within a range, and maybe others."""
    if table is None:
        return {}
    parts: dict[PartitionKey, list[Offsets]] = {}
    with ThreadPoolExecutor(READ_THREADS) as pool:
        for found in pool.map(lambda file: offsets_of(table.read(file, IDENTITY)), table.files(within)):
            for key, offsets in found.items():
                parts.setdefault(key, []).append(offsets)
    return {key: np.concatenate(offsets) for key, offsets in parts.items()}


def offsets_of(rows: pa.Table) -> dict[PartitionKey, Offsets]:
    """Offsets of rows by partition, in no order."""
    offsets = _offsets(rows)
    return {key: offsets[here] for key, here in _by_partition(rows)}


def is_among(rows: pa.Table, places: Places) -> npt.NDArray[np.bool_]:
    """Which of the rows are at one of these places."""
    found, offsets = np.zeros(rows.num_rows, np.bool_), _offsets(rows)
    for key, here in _by_partition(rows):
        if key in places:
            found[here] = np.isin(offsets[here], places[key])
    return found


def is_within(rows: pa.Table, runs: Mapping[PartitionKey, Runs]) -> npt.NDArray[np.bool_]:
    """Which of the rows are at one of the places of these runs."""
    found, offsets = np.zeros(rows.num_rows, np.bool_), _offsets(rows)
    for key, here in _by_partition(rows):
        if key in runs:
            first, last = runs[key]
            run = np.searchsorted(first, offsets[here], side="right") - 1
            found[here] = (run >= 0) & (offsets[here] <= last[run])
    return found


def joined(*many: Places) -> dict[PartitionKey, Offsets]:
    """All places of several, which may be in no order."""
    return {
        key: reduce(np.union1d, [np.unique(each[key]) for each in many if key in each])
        for key in {key for each in many for key in each}
    }


def without(places: Places, others: Places) -> dict[PartitionKey, Offsets]:
    """Those places that are none of the others."""
    left = {key: np.setdiff1d(offsets, others[key]) if key in others else offsets for key, offsets in places.items()}
    return {key: offsets for key, offsets in left.items() if len(offsets)}


def both(places: Places, others: Places) -> dict[PartitionKey, Offsets]:
    """Those places that are among the others."""
    common = {key: np.intersect1d(offsets, others[key]) for key, offsets in places.items() if key in others}
    return {key: offsets for key, offsets in common.items() if len(offsets)}


def count_of(places: Places) -> int:
    """How many places."""
    return sum(len(offsets) for offsets in places.values())


def span_of(places: Places) -> OffsetRange:
    """The range that all of their offsets lie in, of all partitions together."""
    offsets = [each for each in places.values() if len(each)]
    if not offsets:
        return OffsetRange(0, 0)
    return OffsetRange(int(min(each.min() for each in offsets)), int(max(each.max() for each in offsets)) + 1)


def _offsets(rows: pa.Table) -> Offsets:
    return pc.fill_null(rows["_offset"], NAMELESS).to_numpy().astype(np.int64, copy=False)  # type: ignore[no-any-return]


def _by_partition(rows: pa.Table) -> Iterator[tuple[PartitionKey, npt.NDArray[np.intp]]]:
    """Numbers of the rows of each partition."""
    # Compaction and other writers may have chosen another kind of string, which `fill_null` does not know
    topic_ids = pc.fill_null(rows["_topic_id"].cast(pa.string()), "").combine_chunks().dictionary_encode()
    partitions = pc.fill_null(rows["_partition"], NAMELESS).to_numpy()
    codes = topic_ids.indices.to_numpy().astype(np.int64) << 32 | (partitions.astype(np.int64) & 0xFFFFFFFF)
    order = np.argsort(codes, kind="stable")
    for here in np.split(order, np.flatnonzero(np.diff(codes[order], prepend=-1))[1:]):
        if len(here):
            topic_id = topic_ids.dictionary[int(codes[here[0]] >> 32)].as_py()
            yield PartitionKey(TopicId(topic_id), int(partitions[here[0]])), here
