"""JSON objects to columns by a compiled scan, as far as it is sure of them."""

from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgs_core.accel import json_scan_layout as at
from kgs_core.accel.compiled import Loop, address_of, machine_code
from kgs_core.lake.files.row_schema import TIMESTAMP

_SCAN = "kgs_core.accel.json_scan"
_KINDS = MappingProxyType(
    {
        pa.int8(): (at.BYTE, np.int8),
        pa.int16(): (at.SHORT, np.int16),
        pa.int32(): (at.INT, np.int32),
        pa.int64(): (at.LONG, np.int64),
        pa.float32(): (at.FLOAT, np.float32),
        pa.float64(): (at.DOUBLE, np.float64),
        pa.bool_(): (at.BOOLEAN, np.uint8),
        pa.string(): (at.TEXT, np.int32),
        TIMESTAMP: (at.TIME, np.int64),
        pa.date32(): (at.DAY, np.int32),
    }
)
_NEVER = 2**40
_TRIED = 64
"""Values after which the scan is given up where most of them were not taken."""
Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Scanned:
    """Values of which some, or all, are in columns.

    Attributes:
        table: one row a value; what stands in the rows of the others says nothing.
        left: positions of the others, ascending.
    """

    table: pa.Table
    left: npt.NDArray[np.int64]


def scan_json(values: pa.Array, schema: pa.Schema, *, takes_unknown: bool) -> Scanned | None:
    """The values of which it is sure what pyarrow's reader would make; None: of too few.

    `takes_unknown`: whether a field without a column is passed over; else its value is left.
    """
    count, (_, offsets, data) = len(values), values.buffers()
    if not count or not len(schema) or data is None or not data.size:
        return None
    loops = machine_code(_SCAN)
    scan, texts = loops["scan"], loops["texts"]
    columns = _ScannedColumns(schema, count)
    taken: Bytes = np.zeros(count, np.uint8)
    powers = _powers_of_five()  # held here: the cache keeps one of two that were made at once
    setup = np.array([len(schema), takes_unknown, address_of(powers), data.size, 0], np.int64)
    begins = offsets.address + 4 * values.offset
    first, left = 0, 0
    for end in (min(_TRIED, count), count):
        left += scan(data.address, begins, first, end, *map(address_of, (setup, columns.places)), address_of(taken))
        if left > end // 2:
            return None
        first = end
    if values.null_count:
        taken &= values.is_valid().to_numpy(zero_copy_only=False)
    return Scanned(columns.table(data, texts), np.flatnonzero(taken == 0))


class _ScannedColumns:
    """Memory of the columns of so many values, which the scan fills."""

    def __init__(self, schema: pa.Schema, count: int) -> None:
        self._schema, self._types, self._count = schema, schema.types, count
        self._names = [np.frombuffer(name.encode() or b"\0", np.uint8) for name in schema.names]
        kinds = [_KINDS.get(kind, (at.OTHER, np.uint8)) for kind in self._types]
        self._there: list[Bytes] = [np.zeros(count, np.uint8) for _ in kinds]
        self._out = [np.zeros(count if kind != at.OTHER else 0, of) for kind, of in kinds]
        self._sizes = [np.zeros(count if kind == at.TEXT else 0, np.int32) for kind, _ in kinds]
        self.places: Longs = np.zeros((len(schema), at.WIDTH), np.int64)
        for n, (name, (kind, _)) in enumerate(zip(schema.names, kinds, strict=True)):
            place = self.places[n]
            # No name is so long that JSON can write with an escape only, and so the scan leaves it
            is_odd = any(sign in '"\\' or sign < " " for sign in name)
            place[at.NAME], place[at.NAME_SIZE] = address_of(self._names[n]), _NEVER if is_odd else len(name.encode())
            place[at.KIND], place[at.OUT] = kind, address_of(self._out[n])
            place[at.SIZES], place[at.THERE] = address_of(self._sizes[n]), address_of(self._there[n])
            place[at.LAST], place[at.NEXT] = -1, n + 1

    def table(self, values: pa.Buffer, texts: Loop) -> pa.Table:
        """What was put into the columns of the values in these bytes."""
        return pa.Table.from_arrays(
            [self._column(n, values, texts) for n in range(len(self._schema))], schema=self._schema
        )

    def _column(self, n: int, values: pa.Buffer, texts: Loop) -> pa.Array:
        kind, there, out = self._types[n], self._there[n], self._out[n]
        nulls = self._count - int(np.count_nonzero(there))
        mask = pa.py_buffer(np.packbits(there, bitorder="little")) if nulls else None
        match self.places[n, at.KIND]:
            case at.OTHER:
                return pa.nulls(self._count, kind)
            case at.TEXT:
                sizes, ends = self._sizes[n], np.zeros(self._count + 1, np.int32)
                size = int(sizes.sum(dtype=np.int64))
                written = pa.allocate_buffer(size + at.BLOCK)
                places = *map(address_of, (out, sizes)), self._count, address_of(ends), written.address
                texts(values.address, *places, values.size)
                parts = [pa.py_buffer(ends), written.slice(0, size)]
            case at.BOOLEAN:
                parts = [pa.py_buffer(np.packbits(out, bitorder="little"))]
            case _:
                parts = [pa.py_buffer(out)]
        return pa.Array.from_buffers(kind, self._count, [mask, *parts], nulls)


@lru_cache(maxsize=1)
def _powers_of_five() -> Longs:
    """The first 128 bits of each, its upper and its lower 64; the table that goes with the algorithm's proof.

    1/5**n ends nowhere: up to the 27th it is rounded up, behind it cut.
    """
    out = []
    for power in range(at.LEAST_POWER, at.MOST_POWER + 1):
        five = 5 ** abs(power)
        if power >= 0:
            bits = five << 128 >> five.bit_length()
        elif power >= at.LEAST_ROUNDED_UP:
            bits = (1 << (127 + (five - 1).bit_length())) // five + 1
        else:
            bits = (1 << (2 * (five - 1).bit_length() + 128)) // five + 1
            bits >>= bits.bit_length() - 128
        out.append((bits >> 64, bits & (2**64 - 1)))
    return np.array(out, np.uint64).view(np.int64)
