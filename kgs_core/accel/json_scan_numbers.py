"""Numbers and times in JSON, for the compiled scanner: imported only where it is compiled.

A number's nearest double is found by D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and
Experience 51 (2021), all in whole numbers of 64 bits. Nothing here can raise.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending, types

from kgs_core.accel import json_scan_layout as at
from kgs_core.accel.loops import longs, octets
from kgs_core.accel.utf8 import helper

NONE = -(2**62)
"""No time, and no day: far from any that has a year of four digits."""
_intrinsic: Any = extending.intrinsic
_I64, _I128 = ir.IntType(64), ir.IntType(128)
_ZERO, _NINE, _MINUS, _PLUS, _DOT, _COLON, _E = b"09-+.:e"
_T, _BLANK, _Z = b"T Z"
_MAX_TENTH = (2**63 - 10) // 10
_MAX_EXPONENT = 99
_MICROS = 1_000_000
_NO_DIGITS = -1_000_000  # so that a year of which one half is none is below the first
_MANTISSA = 52
_MOST_EXACT = 55  # the greatest power of five in 128 bits


def _on_two(build: Callable[..., Any]) -> Callable[[int, int], int]:
    """Function of two int64 that compiled ones may call, for which this makes the instructions."""

    def typed(_: Any, one: Any, other: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
            return build(builder, *given)

        return types.int64(one, other), generate

    made: Callable[[int, int], int] = _intrinsic(typed)
    return made


def _high(builder: Any, one: Any, other: Any) -> Any:
    product = builder.mul(builder.zext(one, _I128), builder.zext(other, _I128))
    return builder.trunc(builder.lshr(product, ir.Constant(_I128, 64)), _I64)


_high_of_product = _on_two(_high)
_low_of_product = _on_two(lambda builder, one, other: builder.mul(one, other))
_sum = _on_two(lambda builder, one, other: builder.add(one, other))
_shifted_left = _on_two(lambda builder, one, by: builder.shl(one, by))
_shifted_right = _on_two(lambda builder, one, by: builder.lshr(one, by))
_is_below = _on_two(lambda builder, one, other: builder.zext(builder.icmp_unsigned("<", one, other), _I64))
_zeros_in_front = _on_two(lambda builder, one, _: builder.ctlz(one, ir.Constant(ir.IntType(1), 0)))


def _as_float(_: Any, bits: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        single = builder.fptrunc(builder.bitcast(given[0], ir.DoubleType()), ir.FloatType())
        return builder.zext(builder.bitcast(single, ir.IntType(32)), _I64)

    return types.int64(bits), generate


float_bits: Callable[[int], int] = _intrinsic(_as_float)
"""Bits of the float that is nearest to the double of these bits."""


@helper
def number(values: int, p: int, stop: int) -> tuple[int, int, int, int]:
    """End, digits as a whole number without sign, power of ten, and whether it is written as a whole number.

    The end is -1 where that is not sure: no number of JSON, one of more than 18 digits, one with a great exponent.
    """
    of = octets(values)
    if of[p] == _MINUS:
        p += 1
    begin, digits, power, whole = p, 0, 0, 1
    while p < stop and _ZERO <= of[p] <= _NINE:
        if digits > _MAX_TENTH:
            return -1, 0, 0, 0
        digits = digits * 10 + of[p] - _ZERO
        p += 1
    if p == begin or (of[begin] == _ZERO and p - begin > 1):
        return -1, 0, 0, 0
    if p < stop and of[p] == _DOT:
        whole = 0
        p += 1
        begin = p
        while p < stop and _ZERO <= of[p] <= _NINE:
            if digits > _MAX_TENTH:
                return -1, 0, 0, 0
            digits = digits * 10 + of[p] - _ZERO
            p += 1
        power = begin - p
        if power == 0:
            return -1, 0, 0, 0
    if p < stop and of[p] | 32 == _E:
        whole = 0
        p += 1
        sign = 1
        if p < stop and (of[p] == _MINUS or of[p] == _PLUS):
            sign = -1 if of[p] == _MINUS else 1
            p += 1
        begin, exponent = p, 0
        while p < stop and _ZERO <= of[p] <= _NINE:
            exponent = exponent * 10 + of[p] - _ZERO
            if exponent > _MAX_EXPONENT:
                return -1, 0, 0, 0
            p += 1
        if p == begin:
            return -1, 0, 0, 0
        power += sign * exponent
    return p, digits, power, whole


@helper
def double_bits(digits: int, power: int, powers: int) -> int:
    """Bits of the double that is nearest to `digits` times ten to the power; -1: unsure.

    Args:
        digits: below 2**63.
        power: of ten.
        powers: address of the powers of five, see `json_scan_layout`.
    """
    if digits == 0:
        return 0
    if power < at.LEAST_POWER or power > at.MOST_POWER:
        return -1
    of_five = longs(powers + 16 * (power - at.LEAST_POWER))
    zeros = _zeros_in_front(digits, 0)
    shifted = _shifted_left(digits, zeros)
    high, low = _high_of_product(shifted, of_five[0]), _low_of_product(shifted, of_five[0])
    if high & 0x1FF == 0x1FF:
        more = _high_of_product(shifted, of_five[1])
        low = _sum(low, more)
        if _is_below(low, more):
            high = _sum(high, 1)
        if low == -1 and (power < at.LEAST_ROUNDED_UP or power > _MOST_EXACT):
            return -1
    upper = _shifted_right(high, 63)
    by = upper + 64 - _MANTISSA - 3
    mantissa = _shifted_right(high, by)
    exponent = ((217706 * power) >> 16) + 63 + upper - zeros + 1023
    if exponent <= 0 or exponent >= 2046:
        return -1
    halfway = (low == 0 or low == 1) and -4 <= power <= 23 and mantissa & 3 == 1
    if halfway and _shifted_left(mantissa, by) == high:
        mantissa &= ~1
    mantissa = (mantissa + (mantissa & 1)) >> 1
    if mantissa >= 1 << (_MANTISSA + 1):
        mantissa = 1 << _MANTISSA
        exponent += 1
    return (exponent << _MANTISSA) | (mantissa & ((1 << _MANTISSA) - 1))


@helper
def _two(values: int, p: int) -> int:
    """The number that two digits are; negative: they are not."""
    of = octets(values)
    if of[p] < _ZERO or of[p] > _NINE or of[p + 1] < _ZERO or of[p + 1] > _NINE:
        return _NO_DIGITS
    found: int = (of[p] - _ZERO) * 10 + of[p + 1] - _ZERO
    return found


@helper
def day(values: int, p: int) -> int:
    """Days since 1970 of the ten bytes YYYY-MM-DD; NONE: unsure."""
    of = octets(values)
    year, month, of_month = _two(values, p) * 100 + _two(values, p + 2), _two(values, p + 5), _two(values, p + 8)
    if of[p + 4] != _MINUS or of[p + 7] != _MINUS or year < 1 or month < 1 or month > 12 or of_month < 1:
        return NONE
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    length = 30 + (month + month // 8) % 2
    if month == 2:
        length = 29 if is_leap else 28
    if of_month > length:
        return NONE
    # Years that begin in March, so that the day of a leap year is their last
    from_march = (month + 9) % 12
    of_march = year - (1 if month <= 2 else 0)
    of_year = (153 * from_march + 2) // 5 + of_month - 1
    return 365 * of_march + of_march // 4 - of_march // 100 + of_march // 400 + of_year - 719468


@helper
def time(values: int, p: int, end: int) -> int:
    """Microseconds since 1970 of a time that ends at a place, as 2026-01-31T12:00:00.5+02:00; NONE: unsure."""
    of = octets(values)
    if end - p < 19:
        return NONE
    days, hour, minute, second = day(values, p), _two(values, p + 11), _two(values, p + 14), _two(values, p + 17)
    if days == NONE or (of[p + 10] != _T and of[p + 10] != _BLANK) or of[p + 13] != _COLON or of[p + 16] != _COLON:
        return NONE
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return NONE
    p += 19
    micros, unit = 0, _MICROS
    if p < end and of[p] == _DOT:
        p += 1
        while p < end and _ZERO <= of[p] <= _NINE:
            if unit == 1:
                return NONE
            unit //= 10
            micros += (of[p] - _ZERO) * unit
            p += 1
        if unit == _MICROS:
            return NONE
    offset = 0
    if p < end and of[p] == _Z:
        p += 1
    elif p < end and (of[p] == _PLUS or of[p] == _MINUS):
        if end - p != 6 or of[p + 3] != _COLON:
            return NONE
        hours, minutes = _two(values, p + 1), _two(values, p + 4)
        if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
            return NONE
        offset = (hours * 60 + minutes) * (60 if of[p] == _PLUS else -60)
        p = end
    if p != end:
        return NONE
    return (((days * 24 + hour) * 60 + minute) * 60 + second - offset) * _MICROS + micros
