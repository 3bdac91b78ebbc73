"""Faults of JSON values that do not fit their columns, each told from its value alone, in microseconds.

pyarrow's reader takes a whole batch or says of one value that it is wrong, so with it alone every bad value costs some
readings. What is said here is not the verdict on good values: `fault` names what pyarrow is sure to refuse, and leaves
to pyarrow what it may take.
"""

import json
import re
from calendar import isleap
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from kgs_core.ingest.formats.json.json_columns import bytes_of
from kgs_core.ingest.formats.json.json_text import SURROGATE, Pairs, read_object

Check = Callable[[Any], str | None]
WHITE = b" \t\r\n"
MAX_FLOAT = 3.4028235677973366e38  # from here on the nearest float is infinite
MAX_EXPONENT = 308
MAX_DIGITS = 4000  # Python refuses to read a whole number of more than 4300
_HUGE = 10**400  # greater than any double
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[ T](?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?)?(?:Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?",
    re.ASCII,
)
_WHOLE_ESCAPE = re.compile(r"\\(?:[^u]|u[dD][89abAB]..\\u[dD][c-fC-F]..|u[dD][0-7]..|u[^dD]...)", re.DOTALL)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NUMBERS = (int, float, Decimal)
_KINDS = {str: "a text", bool: "true or false", int: "a whole number", tuple: "an object", list: "an array"}


class JsonFaults:
    """The columns that values are to be parsed into."""

    def __init__(self, schema: pa.Schema) -> None:
        self._check = _fields_fault("column", schema)
        self._decoder = _EXACT if any(_has_decimal(f.type) for f in schema) else _PLAIN

    def fault(self, value: bytes) -> str | None:
        """What is wrong for sure, also in fields that no column takes; None where there may be nothing."""
        text = value.strip(WHITE).decode("utf-8", "surrogateescape")  # pyarrow looks at its columns' bytes only
        try:
            pairs = read_object(text, self._decoder)
            if "\\u" in text and "\\" in _WHOLE_ESCAPE.sub("", text):
                return "half a surrogate pair"
            return self._check(pairs)
        except _NumberTooBigError:
            return "a number too big for any column"
        except json.JSONDecodeError as e:
            return f"not one JSON object: {e.msg} at character {e.pos + 1}"
        except Exception:  # noqa: BLE001 - nested deeper, or longer numbers, than Python reads: pyarrow judges alone
            return None


class _NumberTooBigError(Exception):
    """A number that pyarrow refuses wherever it stands."""


def _whole(text: str) -> int:
    return int(text) if len(text) <= MAX_DIGITS else _HUGE


def _fraction(make: Callable[[str], Any]) -> Callable[[str], Any]:
    def fraction(text: str) -> Any:
        mantissa, _, exponent = text.lower().partition("e")
        behind_point = len(mantissa.partition(".")[2])
        if not exponent.startswith("-") and _whole(exponent.lstrip("+0") or "0") > MAX_EXPONENT + behind_point:
            raise _NumberTooBigError
        return make(text)

    return fraction


_PLAIN, _EXACT = (  # an object is a tuple, an array a list
    json.JSONDecoder(object_pairs_hook=tuple, parse_int=_whole, parse_float=_fraction(make))
    for make in (float, Decimal)
)


def _kind(found: object) -> str:
    return _KINDS.get(type(found), "a number")


def _text_fault(found: Any) -> str | None:
    if type(found) is not str:
        return f"{_kind(found)}, wanted is a text (string)"
    return "not UTF-8" if not found.isascii() and SURROGATE.search(found) else None


def _boolean_fault(found: Any) -> str | None:
    return None if type(found) is bool else f"{_kind(found)}, wanted is true or false (boolean)"


def _whole_number(kind: str, bits: int) -> Check:
    end = 2 ** (bits - 1)

    def fault(found: Any) -> str | None:
        if type(found) is int:
            return None if -end <= found < end else f"a number too big for {kind}"
        if type(found) in (float, Decimal):
            return f"a number with a fraction or an exponent, wanted is a whole number ({kind})"
        return f"{_kind(found)}, wanted is a whole number ({kind})"

    return fault


def _double_fault(found: Any) -> str | None:
    return None if type(found) in _NUMBERS else f"{_kind(found)}, wanted is a number (double)"


def _float_fault(found: Any) -> str | None:
    if type(found) not in _NUMBERS:
        return f"{_kind(found)}, wanted is a number (float)"
    try:
        size = abs(float(found))
    except OverflowError:  # becomes infinite, in a double already
        return None
    return "number too big to be stored in float" if MAX_FLOAT <= size < float("inf") else None


def _day_of(pattern: re.Pattern[str], wanted: str) -> Check:
    def fault(found: Any) -> str | None:
        if type(found) is not str:
            return f"{_kind(found)}, wanted is {wanted}"
        match = pattern.fullmatch(found)
        return None if match and _is_day(*map(int, match.groups())) else f"a text that is not {wanted}"

    return fault


def _is_day(year: int, month: int, day: int) -> bool:
    if not (1 <= month <= len(_DAYS) and 1 <= day <= _DAYS[month - 1]):
        return False
    return (month, day) != (2, 29) or isleap(year)


def _binary_fault(found: Any) -> str | None:
    if type(found) is not str:
        return f"{_kind(found)}, wanted is a text in base64 (binary)"
    try:
        bytes_of(found)
    except pa.ArrowInvalid:
        return "a text that is not base64 (binary)"
    return None


def _decimal(kind: pa.DataType) -> Check:
    wanted = f"decimal({kind.precision},{kind.scale})"

    def fault(found: Any) -> str | None:
        if type(found) is str:
            if not _DECIMAL.fullmatch(found):
                return f"a text that is no number ({wanted})"
        elif type(found) not in (int, Decimal):
            return f"{_kind(found)}, wanted is a number, or one in a text ({wanted})"
        _, digits, exponent = Decimal(found).as_tuple()
        significant = len(digits) - next((n for n, digit in enumerate(digits) if digit), len(digits))
        zeros = next((n for n, digit in enumerate(reversed(digits)) if digit), len(digits))
        if not significant:
            return None
        if int(exponent) + zeros < -kind.scale:
            return f"a number of more digits behind the point than {wanted} keeps"
        return f"a number too big for {wanted}" if significant + int(exponent) > kind.precision - kind.scale else None

    return fault


def _fields_fault(what: str, fields: pa.Schema | pa.DataType) -> Check:
    checks: Mapping[str, Check] = {f.name: _check_of(f.type) for f in fields}

    def fault(pairs: Pairs) -> str | None:
        seen = set()
        for name, found in pairs:
            check = checks.get(name)
            if check is None:
                continue
            if name in seen:
                return f"{what} {name}: given twice"
            seen.add(name)
            if found is not None and (problem := check(found)) is not None:
                return f"{what} {name}: {problem}"
        return None

    return fault


def _struct(kind: pa.DataType) -> Check:
    of_fields = _fields_fault("field", kind)

    def fault(found: Any) -> str | None:
        return of_fields(found) if type(found) is tuple else f"{_kind(found)}, wanted is an object (struct)"

    return fault


def _map(kind: pa.DataType) -> Check:
    check = _check_of(kind.item_type)

    def fault(found: Any) -> str | None:
        if type(found) is not tuple:
            return f"{_kind(found)}, wanted is an object (map)"
        if len({name for name, _ in found}) < len(found):
            return "a key given twice"
        problems = (_text_fault(name) or (None if each is None else check(each)) for name, each in found)
        return next((f"an entry: {problem}" for problem in problems if problem), None)

    return fault


def _list(kind: pa.DataType) -> Check:
    check = _check_of(kind.value_type)

    def fault(found: Any) -> str | None:
        if type(found) is not list:
            return f"{_kind(found)}, wanted is an array"
        problems = (None if each is None else check(each) for each in found)
        return next((f"an item: {problem}" for problem in problems if problem), None)

    return fault


def _check_of(kind: pa.DataType) -> Check:
    if pa.types.is_struct(kind):
        return _struct(kind)
    if pa.types.is_map(kind):
        return _map(kind)
    if pa.types.is_list(kind):
        return _list(kind)
    return _decimal(kind) if pa.types.is_decimal(kind) else _CHECKS[kind]


def _has_decimal(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_decimal(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_decimal(kind))


_CHECKS: Mapping[pa.DataType, Check] = {
    pa.string(): _text_fault,
    pa.bool_(): _boolean_fault,
    pa.int8(): _whole_number("byte", 8),
    pa.int16(): _whole_number("short", 16),
    pa.int32(): _whole_number("int", 32),
    pa.int64(): _whole_number("long", 64),
    pa.float32(): _float_fault,
    pa.float64(): _double_fault,
    pa.binary(): _binary_fault,
    pa.timestamp("us", tz="UTC"): _day_of(_TIME, "a time like 2026-01-31T12:00:00.123456Z (timestamp)"),
    pa.date32(): _day_of(_DATE, "a day like 2026-01-31 (date)"),
}
