"""Records of one topic in Arrow columns, however they were fetched: what rows and dead letters are made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

from kgs_core.kafka.records import UNREADABLE, Headers, Record, headers_of, payload_bytes
from kgs_core.lake.files.row_schema import HEADERS, ORIGIN_FIELDS, TIMESTAMP
from kgs_core.model import OffsetRange

MAX_MS = (2**63 - 1) // 1000  # what fits in a column of us
UNREADABLE_HEADER = "header of the record: a key that is not UTF-8"
NO_EPOCH = -1
HeaderRow = list[tuple[str, bytes | None]]
_NO_TOPIC_ID = pa.schema(ORIGIN_FIELDS[1:])


@dataclass(frozen=True, slots=True)
class TopicRecords:
    """Records of one topic, ascending by offset within each partition.

    Attributes:
        values: binary; null where a record has none.
        origin: `ORIGIN_FIELDS` without the topic's id, one row a record.
        faults: position of a record -> what of it no column can take; null stands in its place.
        epochs: leader epoch of each, int32; `NO_EPOCH` where it is not known.
        consumed_bytes: of keys, values and headers, uncompressed.
        oldest_ms: the earliest Kafka timestamp, ms since 1970; None without any.
    """

    values: pa.Array
    origin: pa.Table
    epochs: npt.NDArray[np.int32]
    consumed_bytes: int
    oldest_ms: int | None
    faults: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def partitions(self) -> npt.NDArray[np.int32]:
        """Partition of each."""
        found: npt.NDArray[np.int32] = self.origin["_partition"].to_numpy()
        return found

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Offset of each."""
        found: npt.NDArray[np.int64] = self.origin["_offset"].to_numpy()
        return found

    def are_behind(self, ends: Mapping[int, int]) -> npt.NDArray[np.bool_]:
        """Which are at or behind the given offset of their partition; of partitions that are not named, none."""
        partitions, offsets = self.partitions, self.offsets
        found = np.zeros(len(self), np.bool_)
        for partition, end in ends.items():
            found |= (partitions == partition) & (offsets >= end)
        return found

    def before(self, ends: Mapping[int, int]) -> "TopicRecords":
        """Those below the given offset of their partition; partitions that are not named keep all."""
        kept = np.flatnonzero(~self.are_behind(ends))
        values, origin = self.values.take(pa.array(kept)), self.origin.take(pa.array(kept))
        place = {int(old): new for new, old in enumerate(kept)}
        ms = origin["_timestamp"].cast(pa.int64()).drop_null().to_numpy() // 1000
        return TopicRecords(
            values,
            origin,
            self.epochs[kept],
            _bytes_in(values, origin),
            int(ms[ms > 0].min()) if (ms > 0).any() else None,
            {place[i]: fault for i, fault in self.faults.items() if i in place},
        )

    def leader_epochs(self, ranges: Mapping[int, OffsetRange]) -> dict[int, int]:
        """Leader epoch of the record that each partition's range ends with; left out where it ends with none.

        Past the last record there may be markers of transactions of a later epoch.
        """
        if not len(self) or not ranges:
            return {}
        partitions = self.partitions
        last = np.full(max(int(partitions.max()), *ranges) + 1, -1, np.int64)
        for partition, span in ranges.items():
            last[partition] = span.end - 1
        ends = np.flatnonzero((last[partitions] == self.offsets) & (self.epochs != NO_EPOCH))
        return {int(partitions[i]): int(self.epochs[i]) for i in ends}


def _bytes_in(values: pa.Array, origin: pa.Table) -> int:
    """Keys, values and headers, uncompressed."""
    headers = origin["_headers"].combine_chunks().flatten()
    columns = [values, origin["_key"], *headers.flatten()]
    return sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in columns)


def records_of(messages: Sequence[Record]) -> TopicRecords:
    """The columns of records that are Python objects; a fault of one changes nothing for the others."""
    stamps = [m.timestamp() for m in messages]
    times, faults, oldest = time_column(
        np.array([ms for _, ms in stamps], np.int64),
        np.array([kind != TIMESTAMP_NOT_AVAILABLE for kind, _ in stamps], bool),
    )
    epochs = [NO_EPOCH if (epoch := m.leader_epoch()) is None else epoch for m in messages]
    columns = [
        pa.array([m.partition() for m in messages], pa.int32()),
        pa.array([m.offset() for m in messages], pa.int64()),
        times,
        pa.array([m.key() for m in messages], pa.binary()),
        _headers_of_all(messages, faults),
    ]
    return TopicRecords(
        values=pa.array([m.value() for m in messages], pa.binary()),
        origin=pa.Table.from_arrays(columns, schema=_NO_TOPIC_ID),
        epochs=np.array(epochs, np.int32),
        consumed_bytes=payload_bytes(messages),
        oldest_ms=oldest,
        faults=faults,
    )


def origin_table(columns: Sequence[pa.Array]) -> pa.Table:
    """`ORIGIN_FIELDS` without the topic's id of columns in their order."""
    return pa.Table.from_arrays(list(columns), schema=_NO_TOPIC_ID)


def time_column(ms: npt.NDArray[np.int64], known: npt.NDArray[np.bool_]) -> tuple[pa.Array, dict[int, str], int | None]:
    """Kafka's timestamps as a column, the faults of those that none can take, and the earliest after 1970."""
    fits = known & (ms >= -MAX_MS) & (ms <= MAX_MS)
    column = pa.array(np.where(fits, ms, 0) * 1000, pa.int64(), mask=None if fits.all() else ~fits)
    faults = {
        int(i): f"timestamp of the record: {ms[i]} ms since 1970 is out of range" for i in np.flatnonzero(known & ~fits)
    }
    after = ms[known & (ms > 0)]
    return column.view(TIMESTAMP), faults, int(after.min()) if len(after) else None


def _headers_of_all(messages: Sequence[Record], faults: dict[int, str]) -> pa.Array:
    found = [headers_of(m) for m in messages]
    if not any(found) and all(headers is not UNREADABLE for headers in found):
        return pa.ListArray.from_arrays(pa.array(np.zeros(len(found) + 1, np.int32)), pa.array([], HEADERS.value_type))
    rows: list[HeaderRow | None] = []
    for i, headers in enumerate(found):
        rows.append(_row(headers))
        if rows[-1] is None:
            faults[i] = UNREADABLE_HEADER
    return pa.array(rows, HEADERS)


def _row(headers: Headers | None) -> HeaderRow | None:
    if headers is UNREADABLE:
        return None
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in headers or ()]
