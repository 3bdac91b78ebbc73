"""Columns of the fields of Protobuf messages, a batch at once, and which messages have a value that no column takes."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from kgs_core.ingest.formats.protobuf.protobuf_schema import Shape, ShapeKind
from kgs_core.ingest.formats.texts import is_text
from kgs_core.lake.files.row_schema import TIMESTAMP

MAX_LONG = 2**63 - 1
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799  # years 1 to 9999
MAX_DURATION_S = 315_576_000_000
NANOS = 10**9
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class FieldColumns:
    """Columns of fields. What is set aside as a fault is null in them, and its row is not to be used.

    `faults`: row that has a value which no column takes -> the first reason in the order of the columns.
    """

    def __init__(self) -> None:
        self.faults: dict[int, str] = {}
        self._by_kind: Mapping[ShapeKind, Callable[[pa.Array, Shape, Rows, str], pa.Array]] = {
            ShapeKind.PLAIN: self._plain,
            ShapeKind.STRING: self._string,
            ShapeKind.UINT64: self._uint64,
            ShapeKind.ENUM: self._enum,
            ShapeKind.TIMESTAMP: self._timestamp,
            ShapeKind.DURATION: self._duration,
            ShapeKind.JSON: self._json,
            ShapeKind.WRAPPER: self._wrapper,
            ShapeKind.MESSAGE: self._message,
            ShapeKind.LIST: self._list,
            ShapeKind.MAP: self._map,
        }

    def column(self, found: pa.Array, shape: Shape, rows: Rows, where: str) -> pa.Array:
        """The column of a field. `rows`: of each value the row that it is in."""
        return self._by_kind[shape.kind](found, shape, rows, where)

    def set_aside(self, rows: Rows, reason: str) -> None:
        """Take note of rows that are not to be used."""
        for row in rows.tolist():
            self.faults.setdefault(row, reason)

    def _fault(self, wrong: Mask, rows: Rows, where: str, what: str) -> None:
        self.set_aside(rows[wrong], f"field {where}: {what}")

    @staticmethod
    def _plain(found: pa.Array, shape: Shape, _rows: Rows, _where: str) -> pa.Array:
        return found.cast(shape.type)

    def _string(self, found: pa.Array, shape: Shape, rows: Rows, where: str) -> pa.Array:
        try:
            return found.cast(shape.type)
        except pa.ArrowInvalid:  # proto2 lets bytes pass that are no UTF-8
            wrong = np.array([not is_text(value) for value in found.to_pylist()], bool)
        self._fault(wrong, rows, where, "a text that is not UTF-8")
        return _without(found, wrong).cast(shape.type)

    def _uint64(self, found: pa.Array, shape: Shape, rows: Rows, where: str) -> pa.Array:
        wrong = _mask(pc.greater(found, pa.scalar(MAX_LONG, pa.uint64())))
        self._fault(wrong, rows, where, "a number above 9223372036854775807, which no long holds (uint64)")
        return _without(found, wrong).cast(shape.type)

    @staticmethod
    def _enum(found: pa.Array, shape: Shape, _rows: Rows, _where: str) -> pa.Array:
        numbers, names = pa.array(shape.names.keys(), pa.int32()), pa.array(shape.names.values(), pa.string())
        named = names.take(pc.index_in(found, value_set=numbers))
        return pc.coalesce(named, found.cast(pa.string())) if named.null_count > found.null_count else named

    def _timestamp(self, found: pa.Array, _shape: Shape, rows: Rows, where: str) -> pa.Array:
        seconds, nanos = _seconds_and_nanos(found)
        wrong = (seconds < FIRST_SECOND) | (seconds > LAST_SECOND) | (nanos < 0) | (nanos >= NANOS)
        self._fault(wrong, rows, where, "no instant of the years 1 to 9999 (Timestamp)")
        micros = np.where(wrong, 0, seconds) * 1_000_000 + nanos // 1000
        return pa.array(micros, pa.int64(), mask=wrong | _mask(found.is_null())).cast(TIMESTAMP)

    def _duration(self, found: pa.Array, _shape: Shape, rows: Rows, where: str) -> pa.Array:
        seconds, nanos = _seconds_and_nanos(found)
        wrong = (seconds < -MAX_DURATION_S) | (seconds > MAX_DURATION_S) | (nanos <= -NANOS) | (nanos >= NANOS)
        wrong |= ((seconds > 0) & (nanos < 0)) | ((seconds < 0) & (nanos > 0))
        self._fault(wrong, rows, where, "no span of time of up to 10,000 years (Duration)")
        micros = np.where(wrong, 0, seconds) * 1_000_000 + np.sign(nanos) * (np.abs(nanos) // 1000)
        return pa.array(micros, pa.int64(), mask=wrong | _mask(found.is_null()))

    def _json(self, found: pa.Array, shape: Shape, rows: Rows, where: str) -> pa.Array:
        texts, wrong = [], np.zeros(len(found), bool)
        for i, value in enumerate(found.to_pylist()):
            try:
                texts.append(None if value is None else _json_text(value, shape))
            except (DecodeError, ValueError, RecursionError):
                texts.append(None)
                wrong[i] = True
        self._fault(wrong, rows, where, "holds what JSON cannot say, such as NaN")
        return pa.array(texts, pa.string())

    def _wrapper(self, found: pa.Array, shape: Shape, rows: Rows, where: str) -> pa.Array:
        value = self.column(found.field(0), shape.parts[0][1], rows, where)
        return _without(value, _mask(found.is_null())) if found.null_count else value

    def _message(self, found: pa.Array, shape: Shape, rows: Rows, where: str) -> pa.Array:
        columns = [self.column(found.field(part.made_as), part, rows, f"{where}.{name}") for name, part in shape.parts]
        return pa.StructArray.from_arrays(columns, fields=list(shape.type), mask=found.is_null())

    def _list(self, found: pa.Array, shape: Shape, rows: Rows, where: str) -> pa.Array:
        items = self.column(found.values, shape.parts[0][1], _of_items(found, rows), f"{where}[]")
        return pa.ListArray.from_arrays(found.offsets, items, type=shape.type)

    def _map(self, found: pa.Array, shape: Shape, rows: Rows, where: str) -> pa.Array:
        inner = _of_items(found, rows)
        parts = {
            name: self.column(found.values.field(part.made_as), part, inner, f"{where}{{{name}}}")
            for name, part in shape.parts
        }
        keys = parts["key"]
        if keys.null_count:  # of rows that are set aside: a map's key may not be null
            keys = pc.fill_null(keys, _ZEROS.get(keys.type, 0))
        return pa.MapArray.from_arrays(found.offsets, keys, parts["value"], type=shape.type)


_ZEROS: Mapping[pa.DataType, Any] = {pa.string(): "", pa.bool_(): False}


def _of_items(found: pa.Array, rows: Rows) -> Rows:
    return np.repeat(rows, np.diff(found.offsets.to_numpy()))


def _seconds_and_nanos(found: pa.Array) -> tuple[Rows, Rows]:
    seconds, nanos = (found.field(n).to_numpy(zero_copy_only=False).astype(np.int64) for n in (0, 1))
    return seconds, nanos


def _mask(found: pa.Array) -> Mask:
    mask: Mask = pc.fill_null(found, fill_value=False).to_numpy(zero_copy_only=False)
    return mask


def _without(found: pa.Array, wrong: Mask) -> pa.Array:
    return pc.if_else(pa.array(wrong), pa.scalar(None, found.type), found) if wrong.any() else found


def _json_text(value: bytes, shape: Shape) -> str:
    message = GetMessageClass(shape.message).FromString(value)
    return json.dumps(MessageToDict(message), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
