"""Memory of one topic's columns while compiled loops fill it, and the Arrow columns over it afterwards."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgs_core.accel import layout as at
from kgs_core.ingest.fetch.topic_records import UNREADABLE_HEADER, HeaderRow, TopicRecords, origin_table, time_column
from kgs_core.lake.files.row_schema import HEADERS

Number = TypeVar("Number", bound=np.generic)
_ALIGNED = 64  # as Arrow wants its buffers


class TopicColumns:
    """One piece of Arrow's memory with all columns of one topic, as large as they will be.

    `state`: one row of the loops' columns: how far each has come, and where each begins.
    """

    def __init__(self, sums: npt.NDArray[np.int64]) -> None:
        rows, self._headers = int(sums[at.ROWS]), int(sums[at.SUM_HEADERS])
        self._rows, self._bytes = rows, int(sums[at.SUM_VALUE] + sums[at.SUM_KEY] + sums[at.SUM_HEADER_BYTES])
        per_header = 4 * (self._headers + 1)
        sizes = {
            at.VALUES: int(sums[at.SUM_VALUE]),
            at.VALUE_OFFSETS: 4 * (rows + 1),
            at.VALUE_THERE: rows,
            at.KEYS: int(sums[at.SUM_KEY]),
            at.KEY_OFFSETS: 4 * (rows + 1),
            at.KEY_THERE: rows,
            at.PARTITIONS: 4 * rows,
            at.OFFSETS: 8 * rows,
            at.TIMES: 8 * rows,
            at.EPOCHS: 4 * rows,
            at.HEADER_OFFSETS: 4 * (rows + 1),
            at.NAMES: int(sums[at.SUM_HEADER_BYTES]),
            at.NAME_OFFSETS: per_header,
            at.CONTENTS: int(sums[at.SUM_HEADER_BYTES]),
            at.CONTENT_OFFSETS: per_header,
            at.CONTENT_THERE: self._headers,
        }
        padded = np.array([-(-size // _ALIGNED) * _ALIGNED for size in sizes.values()], np.int64)
        begins = np.concatenate([[0], np.cumsum(padded)])
        memory = pa.allocate_buffer(int(begins[-1]))
        self._places = {
            name: (int(begin), int(begin) + size) for (name, size), begin in zip(sizes.items(), begins, strict=False)
        }
        self._octets = np.frombuffer(memory, np.uint8)
        self._parts = {name: memory.slice(first, end - first) for name, (first, end) in self._places.items()}
        self.state = np.zeros(at.COLUMNS, np.int64)
        self.state[list(sizes)] = memory.address + begins[:-1]
        for name in (at.VALUE_OFFSETS, at.KEY_OFFSETS, at.HEADER_OFFSETS, at.NAME_OFFSETS, at.CONTENT_OFFSETS):
            self._numbers(name, np.int32)[0] = 0

    def records(self) -> TopicRecords:
        """What the loops have filled in."""
        ms = self._numbers(at.TIMES, np.int64)
        times, faults, oldest = time_column(ms, ms != at.NO_TIME)
        headers, unreadable = self._header_column()
        faults |= dict.fromkeys(unreadable, UNREADABLE_HEADER)
        partitions = pa.Array.from_buffers(pa.int32(), self._rows, [None, self._parts[at.PARTITIONS]])
        offsets = pa.Array.from_buffers(pa.int64(), self._rows, [None, self._parts[at.OFFSETS]])
        keys = self._bytes_column(self._rows, at.KEYS, at.KEY_OFFSETS, at.KEY_THERE, at.NO_KEY)
        return TopicRecords(
            values=self._bytes_column(self._rows, at.VALUES, at.VALUE_OFFSETS, at.VALUE_THERE, at.NO_VALUE),
            origin=origin_table([partitions, offsets, times, keys, headers]),
            epochs=self._numbers(at.EPOCHS, np.int32),
            consumed_bytes=self._bytes,
            oldest_ms=oldest,
            faults=faults,
        )

    def _numbers(self, name: int, kind: type[Number]) -> npt.NDArray[Number]:
        first, end = self._places[name]
        return self._octets[first:end].view(kind)

    def _bytes_column(self, rows: int, data: int, offsets: int, there: int, missing: int) -> pa.Array:
        mask = None
        if self.state[missing]:
            mask = pa.py_buffer(np.packbits(self._numbers(there, np.uint8), bitorder="little"))
        parts = [mask, self._parts[offsets], self._parts[data]]
        return pa.Array.from_buffers(pa.binary(), rows, parts, int(self.state[missing]))

    def _header_column(self) -> tuple[pa.Array, Sequence[int]]:
        """Headers, and the positions of records whose headers cannot be read: theirs are null."""
        offsets, rows = self._parts[at.HEADER_OFFSETS], self._rows
        names = pa.Array.from_buffers(
            pa.binary(), self._headers, [None, self._parts[at.NAME_OFFSETS], self._parts[at.NAMES]]
        )
        contents = self._bytes_column(self._headers, at.CONTENTS, at.CONTENT_OFFSETS, at.CONTENT_THERE, at.NO_CONTENT)
        try:
            texts = names.cast(pa.string())
        except pa.ArrowInvalid:  # not UTF-8
            return _one_by_one(names.to_pylist(), contents.to_pylist(), self._numbers(at.HEADER_OFFSETS, np.int32))
        pairs = pa.StructArray.from_arrays([texts, contents], fields=list(HEADERS.value_type))
        return pa.Array.from_buffers(HEADERS, rows, [None, offsets], children=[pairs]), ()


def _one_by_one(
    names: list[bytes], contents: list[bytes | None], offsets: npt.NDArray[np.int32]
) -> tuple[pa.Array, Sequence[int]]:
    rows: list[HeaderRow | None] = []
    for first, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        try:
            rows.append([(names[i].decode(), contents[i]) for i in range(first, end)])
        except UnicodeDecodeError:
            rows.append(None)
    return pa.array(rows, HEADERS), [i for i, row in enumerate(rows) if row is None]
