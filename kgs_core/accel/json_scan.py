"""Scan of JSON objects into columns, written for numba: imported only where it is compiled.

It takes an object only where it is sure that pyarrow's reader would take it and what that would make of it. All others
it leaves. Every argument is an int64, most of them an address. Nothing here can raise.
"""

from kgs_core.accel import json_scan_layout as at
from kgs_core.accel.json_scan_numbers import NONE, day, double_bits, float_bits, number, time
from kgs_core.accel.json_scan_texts import after_white, text_end, write_text
from kgs_core.accel.json_scan_values import value_begin, value_end, word_end
from kgs_core.accel.loops import ints, longs, octets, shorts
from kgs_core.accel.utf8 import helper

ENTRIES = {"scan": 7, "texts": 7}
"""Function -> number of its arguments."""
_QUOTE, _OPEN, _CLOSE, _LIST, _COMMA, _MINUS = b'"{}[,-'
_T, _F, _N = b"tfn"
_SIGN = -(2**63)
_FLOAT_SIGN = 2**31
_MOST_FLOAT = 0x47EFFFFFF0000000
"""Bits of the least double whose nearest float is infinite."""


@helper
def _put_number(values: int, p: int, stop: int, powers: int, column: int, row: int) -> int:
    """Put the number at a place into a column; the place behind it, or -1: unsure."""
    known = longs(column)
    kind = known[at.KIND]
    end, digits, power, is_whole = number(values, p, stop)
    if end < 0:
        return -1
    is_negative = octets(values)[p] == _MINUS
    if kind == at.DOUBLE or kind == at.FLOAT:
        bits = double_bits(digits, power, powers)
        if bits < 0:
            return -1
        if kind == at.DOUBLE:
            longs(known[at.OUT])[row] = bits | _SIGN if is_negative else bits
        else:
            if bits >= _MOST_FLOAT:
                return -1
            single = float_bits(bits)
            ints(known[at.OUT])[row] = single | _FLOAT_SIGN if is_negative else single
        return end
    if not is_whole:
        return -1
    found = -digits if is_negative else digits
    if kind == at.LONG:
        longs(known[at.OUT])[row] = found
        return end
    if kind == at.INT and -(2**31) <= found < 2**31:
        ints(known[at.OUT])[row] = found
        return end
    if kind == at.SHORT and -(2**15) <= found < 2**15:
        shorts(known[at.OUT])[row] = found
        return end
    if kind == at.BYTE and -(2**7) <= found < 2**7:
        octets(known[at.OUT])[row] = found
        return end
    return -1


@helper
def _put_text(values: int, p: int, stop: int, limit: int, column: int, row: int) -> int:
    """Put the text whose quote is at a place into a column; the place behind it, or -1: unsure."""
    known = longs(column)
    kind = known[at.KIND]
    end, size, is_escaped = text_end(values, p + 1, stop, limit)
    if end < 0:
        return -1
    if kind == at.TEXT:
        ints(known[at.OUT])[row] = ~(p + 1) if is_escaped else p + 1
        ints(known[at.SIZES])[row] = size
        return end + 1
    if is_escaped:
        return -1
    if kind == at.TIME:
        micros = time(values, p + 1, end)
        if micros == NONE:
            return -1
        longs(known[at.OUT])[row] = micros
        return end + 1
    if kind == at.DAY and size == 10:
        days = day(values, p + 1)
        if days == NONE:
            return -1
        ints(known[at.OUT])[row] = days
        return end + 1
    return -1


@helper
def _put(values: int, p: int, stop: int, limit: int, powers: int, column: int, row: int) -> int:
    """Put the value at a place into a column; the place behind it, or -1: unsure."""
    known = longs(column)
    sign = octets(values)[p]
    if sign == _N:
        return word_end(values, p, stop)
    if sign == _QUOTE:
        end = _put_text(values, p, stop, limit, column, row)
    elif sign == _T or sign == _F:
        end = word_end(values, p, stop)
        if known[at.KIND] != at.BOOLEAN:
            return -1
        octets(known[at.OUT])[row] = 1 if sign == _T else 0
    elif sign == _OPEN or sign == _LIST:
        return -1
    else:
        end = _put_number(values, p, stop, powers, column, row)
    if end >= 0:
        octets(known[at.THERE])[row] = 1
    return end


@helper
def _is_named(values: int, p: int, column: int) -> bool:
    """Whether a column's name stands at a place."""
    known = longs(column)
    name, size = octets(known[at.NAME]), known[at.NAME_SIZE]
    of = octets(values)
    for k in range(size):
        if of[p + k] != name[k]:
            return False
    return True


@helper
def _object_end(values: int, p: int, stop: int, setup: int, columns: int, row: int) -> int:
    """Put an object's fields into their columns; the place behind it, or -1: unsure."""
    of, known = octets(values), longs(setup)
    count, limit, powers = known[at.COLUMNS], known[at.LIMIT], known[at.POWERS]
    p = after_white(values, p, stop)
    if p >= stop or of[p] != _OPEN:
        return -1
    p = after_white(values, p + 1, stop)
    if p < stop and of[p] == _CLOSE:
        return after_white(values, p + 1, stop)
    expected, before = known[at.FIRST], -1
    while True:
        if p >= stop or of[p] != _QUOTE:
            return -1
        p += 1
        field = -1
        if expected < count:  # most often fields come as they did in the last object
            size = longs(columns + 8 * at.WIDTH * expected)[at.NAME_SIZE]
            if p + size < stop and of[p + size] == _QUOTE and _is_named(values, p, columns + 8 * at.WIDTH * expected):
                field = expected
                p += size
        if field < 0:
            end, size, is_escaped = text_end(values, p, stop, limit)
            if end < 0 or is_escaped:
                return -1
            for n in range(count):
                column = columns + 8 * at.WIDTH * n
                if longs(column)[at.NAME_SIZE] == size and _is_named(values, p, column):
                    field = n
                    break
            p = end
        p = value_begin(values, p + 1, stop)
        if p < 0:
            return -1
        if field >= 0:
            column = columns + 8 * at.WIDTH * field
            if longs(column)[at.LAST] == row:
                return -1
            longs(column)[at.LAST] = row
            if field != expected:
                if before < 0:
                    known[at.FIRST] = field
                else:
                    longs(columns + 8 * at.WIDTH * before)[at.NEXT] = field
            before = field
            expected = longs(column)[at.NEXT]
            p = _put(values, p, stop, limit, powers, column, row)
        elif known[at.TAKES_UNKNOWN]:
            p = value_end(values, p, stop, limit)
        else:
            return -1
        if p < 0:
            return -1
        p = after_white(values, p, stop)
        if p >= stop:
            return -1
        if of[p] == _CLOSE:
            return after_white(values, p + 1, stop)
        if of[p] != _COMMA:
            return -1
        p = after_white(values, p + 1, stop)


def scan(values: int, offsets: int, first: int, end: int, setup: int, columns: int, taken: int) -> int:
    """Put the values `first` to `end` into the columns; returns how many were not taken.

    Args:
        values: bytes of all values.
        offsets: int32: where each begins in them, and the end of the last.
        first: number of a value, as `end`.
        end: the one behind the last.
        setup: see `json_scan_layout`, as `columns`.
        columns: as large as there are values, in which nothing is there.
        taken: one byte a value: 1 where it was.
    """
    left = 0
    for row in range(first, end):
        stop = ints(offsets)[row + 1]
        if _object_end(values, ints(offsets)[row], stop, setup, columns, row) == stop:
            octets(taken)[row] = 1
            continue
        octets(taken)[row] = 0
        left += 1
        for n in range(longs(setup)[at.COLUMNS]):
            column = longs(columns + 8 * at.WIDTH * n)
            if column[at.LAST] == row:
                octets(column[at.THERE])[row] = 0
                if column[at.KIND] == at.TEXT:
                    ints(column[at.SIZES])[row] = 0
    return left


def texts(values: int, begins: int, sizes: int, count: int, offsets: int, out: int, limit: int) -> int:
    """Write a column's texts one behind the other; returns their bytes.

    Args:
        values: bytes of all values.
        begins: int32, one a row, as `scan` has left them; `sizes` likewise.
        sizes: of each; 0 where there is none.
        count: of rows.
        offsets: int32: where each begins in `out`, and the end of the last; the first is there.
        out: large enough, with `BLOCK` bytes more.
        limit: end of all values.
    """
    to, size = 0, 0
    for row in range(count):
        size = ints(sizes)[row]
        if size > 0:
            write_text(values, ints(begins)[row], out + to, size, limit)
            to += size
        ints(offsets)[row + 1] = to
    return to
