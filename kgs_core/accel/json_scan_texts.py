"""Texts in JSON, for the compiled scanner: imported only where it is compiled.

Places are numbers of bytes from the beginning of all values. Nothing here can raise.
"""

from typing import Any

from llvmlite import ir
from numba import extending, types

from kgs_core.accel.json_scan_layout import BLOCK
from kgs_core.accel.loops import copy, octets
from kgs_core.accel.utf8 import helper, more_of_character

_intrinsic: Any = extending.intrinsic
_QUOTE, _BACKSLASH, _SLASH = b'"\\/'
_ZERO, _NINE, _A, _F, _U = b"09afu"
_BLANK, _TAB, _NEWLINE, _RETURN = b" \t\n\r"
_LETTERS = b"bfnrt"
_CONTROLS = b"\b\f\n\r\t"


def _plain(_: Any, address: Any) -> Any:
    """How many bytes from an address on are ASCII without quote, backslash and controls, at most `BLOCK`."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), BLOCK)
        found = builder.load(builder.inttoptr(given[0], kind.as_pointer()), typ=kind, align=1)

        def all_of(number: int) -> Any:
            return ir.Constant(kind, [ir.Constant(ir.IntType(8), number)] * BLOCK)

        ends = builder.or_(
            builder.icmp_unsigned("==", found, all_of(_QUOTE)), builder.icmp_unsigned("==", found, all_of(_BACKSLASH))
        )
        # As signed bytes, what is no ASCII is below the controls
        odd = builder.or_(ends, builder.icmp_signed("<", found, all_of(_BLANK)))
        place = builder.cttz(builder.bitcast(odd, ir.IntType(BLOCK)), ir.Constant(ir.IntType(1), 0))
        return builder.zext(place, ir.IntType(64))

    return types.int64(address), generate


def _wide(_: Any, out: Any, source: Any) -> Any:
    """Copy `BLOCK` bytes from one address to another."""

    def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), BLOCK)
        to, of = (builder.inttoptr(each, kind.as_pointer()) for each in given)
        builder.store(builder.load(of, typ=kind, align=1), to, align=1)
        return context.get_dummy_value()

    return types.void(out, source), generate


_plain_bytes = _intrinsic(_plain)
_copy_wide = _intrinsic(_wide)


@helper
def after_white(values: int, p: int, stop: int) -> int:
    """The first place that is no white space."""
    of = octets(values)
    while p < stop and (of[p] == _BLANK or of[p] == _NEWLINE or of[p] == _RETURN or of[p] == _TAB):
        p += 1
    return p


@helper
def _hex(values: int, p: int) -> int:
    """The number that four hexadecimal digits are; -1: they are not."""
    of = octets(values)
    number = 0
    for k in range(4):
        digit = of[p + k] | 32
        if _ZERO <= of[p + k] <= _NINE:
            number = number * 16 + of[p + k] - _ZERO
        elif _A <= digit <= _F:
            number = number * 16 + digit - _A + 10
        else:
            return -1
    return number


@helper
def _escape(values: int, p: int, stop: int) -> tuple[int, int]:
    """The character that the backslash at a place begins, and how many bytes it is written with; -1, 0: none."""
    of = octets(values)
    if p + 1 >= stop:
        return -1, 0
    sign = of[p + 1]
    if sign == _QUOTE or sign == _BACKSLASH or sign == _SLASH:
        return sign + 0, 2
    for k in range(5):
        if sign == _LETTERS[k]:
            return _CONTROLS[k] + 0, 2
    if sign != _U or p + 6 > stop:
        return -1, 0
    code = _hex(values, p + 2)
    if code < 0xD800 or code > 0xDFFF:
        return code, 6
    if code > 0xDBFF or p + 12 > stop or of[p + 6] != _BACKSLASH or of[p + 7] != _U:
        return -1, 0
    low = _hex(values, p + 8)
    if low < 0xDC00 or low > 0xDFFF:
        return -1, 0
    return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00), 12


@helper
def _bytes_of(code: int) -> int:
    """How many bytes a character takes in UTF-8."""
    if code < 0x80:
        return 1
    if code < 0x800:
        return 2
    return 3 if code < 0x10000 else 4


@helper
def text_end(values: int, p: int, stop: int, limit: int) -> tuple[int, int, int]:
    """The place of the quote that ends a text, the bytes of the text, and whether it has escapes; -1, 0, 0: unsure.

    Args:
        values: bytes of all values.
        p: behind the quote that it begins with.
        stop: end of its value.
        limit: end of all values.
    """
    of = octets(values)
    begin, spared, escaped = p, 0, 0
    while p < stop:
        byte = of[p]
        if byte == _QUOTE:
            return p, p - begin - spared, escaped
        if byte == _BACKSLASH:
            code, width = _escape(values, p, stop)
            if code < 0:
                break
            escaped = 1
            spared += width - _bytes_of(code)
            p += width
        elif byte < _BLANK:
            break
        elif byte < 128:
            p += _plain_bytes(values + p) if p + BLOCK <= limit else 1
        else:
            more = more_of_character(values, p, stop)
            if more == 0:
                break
            p += more + 1
    return -1, 0, 0


@helper
def write_text(values: int, begin: int, out: int, size: int, limit: int) -> None:
    """Write a text that `text_end` has found to an address.

    Args:
        values: bytes of all values.
        begin: the place of its first byte, or ~place where it has escapes.
        out: address, where there is room for `BLOCK` bytes more.
        size: its bytes without escapes.
        limit: end of all values.
    """
    if 0 <= begin <= limit - BLOCK and size <= BLOCK:
        _copy_wide(out, values + begin)
        return
    if begin >= 0:
        copy(out, values + begin, size)
        return
    of, to = octets(values), octets(out)
    p, n = ~begin, 0
    while n < size:
        byte = of[p]
        if byte == _BACKSLASH:
            code, width = _escape(values, p, limit)
            p += width
            count = _bytes_of(code)
            if count == 1:
                to[n] = code
            else:
                to[n] = (0xF00 >> count & 0xFF) | (code >> 6 * (count - 1))
                for k in range(1, count):
                    to[n + k] = 0x80 | (code >> 6 * (count - 1 - k) & 0x3F)
            n += count
        elif byte >= 128 or p + BLOCK > limit:
            to[n] = byte
            n += 1
            p += 1
        else:
            _copy_wide(out + n, values + p)
            run = _plain_bytes(values + p)
            n += run
            p += run
