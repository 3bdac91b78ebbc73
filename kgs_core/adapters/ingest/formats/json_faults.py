"""Faults of JSON values that do not fit their columns, each told from its value alone, in microseconds.

pyarrow's reader takes a whole batch or says of one value that it is wrong, so with it alone every bad value costs some
readings. What is said here is not the verdict on good values: `fault` names what pyarrow is sure to refuse, and leaves
to pyarrow what it may take.
"""

import json
import re
from calendar import isleap
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

Check = Callable[[Any], str | None]
Pairs = tuple[tuple[str, Any], ...]
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
_SURROGATE = re.compile("[\ud800-\udfff]")
_WHOLE_ESCAPE = re.compile(r"\\(?:[^u]|u[dD][89abAB]..\\u[dD][c-fC-F]..|u[dD][0-7]..|u[^dD]...)", re.DOTALL)
_TEXT_OR_ODD_NUMBER = re.compile(r'"(?:[^"\\]++|\\.)*+"?|-NaN|Inf(?:inity)?', re.DOTALL)  # which pyarrow takes, too
_PYTHON_NAMES = {"-NaN": "NaN", "Inf": "Infinity", "Infinity": "Infinity"}
_KINDS = {str: "a text", bool: "true or false", int: "a whole number", tuple: "an object", list: "an array"}


class JsonFaults:
    """The columns that values are to be parsed into."""

    def __init__(self, schema: pa.Schema) -> None:
        self._checks: Mapping[str, Check] = {f.name: _CHECKS[f.type] for f in schema}

    def fault(self, value: bytes, *, thorough: bool = False) -> str | None:
        """What is wrong for sure; None where there may be nothing.

        Args:
            thorough: look also for what hardly ever occurs, and what is wrong in fields that no column takes.
        """
        text = value.strip(WHITE).decode("utf-8", "surrogateescape")  # pyarrow looks at its columns' bytes only
        decoder = _THOROUGH if thorough else _QUICK
        try:
            pairs = _read(text, decoder)
        except _NumberTooBigError:
            return "a number too big for any column"
        except json.JSONDecodeError as e:
            return f"not one JSON object: {e.msg} at character {e.pos + 1}"
        except (RecursionError, ValueError):  # nested deeper, or more digits, than Python reads
            return None
        if thorough and "\\u" in text and "\\" in _WHOLE_ESCAPE.sub("", text):
            return "half a surrogate pair"
        return self._of_columns(pairs)

    def _of_columns(self, pairs: Pairs) -> str | None:
        seen = set()
        for name, found in pairs:
            check = self._checks.get(name)
            if check is None:
                continue
            if name in seen:
                return f"column {name}: given twice"
            seen.add(name)
            if found is not None and (fault := check(found)) is not None:
                return f"column {name}: {fault}"
        return None


class _NumberTooBigError(Exception):
    """A number that pyarrow refuses wherever it stands."""


def _read(text: str, decoder: json.JSONDecoder) -> Pairs:
    try:
        return _decoded(text, decoder)
    except json.JSONDecodeError:
        if "NaN" not in text and "Inf" not in text:
            raise
    return _decoded(_TEXT_OR_ODD_NUMBER.sub(_as_python_reads_it, text), decoder)


def _as_python_reads_it(found: re.Match[str]) -> str:
    token = found.group()
    return token if token.startswith('"') else _PYTHON_NAMES[token]


def _decoded(text: str, decoder: json.JSONDecoder) -> Pairs:
    pairs: Pairs
    pairs, end = decoder.raw_decode(text)
    if end != len(text):
        raise json.JSONDecodeError("more than one JSON object", text, end)
    return pairs


def _whole(text: str) -> int:
    return int(text) if len(text) <= MAX_DIGITS else _HUGE


def _fraction(text: str) -> float:
    mantissa, _, exponent = text.lower().partition("e")
    if exponent:
        behind_point = len(mantissa.partition(".")[2])
        if _whole(exponent) > MAX_EXPONENT + behind_point:
            raise _NumberTooBigError
    return float(text)


_QUICK = json.JSONDecoder(object_pairs_hook=tuple)  # an object is a tuple, an array a list
_THOROUGH = json.JSONDecoder(object_pairs_hook=tuple, parse_int=_whole, parse_float=_fraction)


def _kind(found: object) -> str:
    return _KINDS.get(type(found), "a number")


def _text_fault(found: Any) -> str | None:
    if type(found) is not str:
        return f"{_kind(found)}, wanted is a text (string)"
    return "not UTF-8" if not found.isascii() and _SURROGATE.search(found) else None


def _boolean_fault(found: Any) -> str | None:
    return None if type(found) is bool else f"{_kind(found)}, wanted is true or false (boolean)"


def _whole_number(kind: str, bits: int) -> Check:
    end = 2 ** (bits - 1)

    def fault(found: Any) -> str | None:
        if type(found) is int:
            return None if -end <= found < end else f"a number too big for {kind}"
        if type(found) is float:
            return f"a number with a fraction or an exponent, wanted is a whole number ({kind})"
        return f"{_kind(found)}, wanted is a whole number ({kind})"

    return fault


def _double_fault(found: Any) -> str | None:
    return None if type(found) in (int, float) else f"{_kind(found)}, wanted is a number (double)"


def _float_fault(found: Any) -> str | None:
    if type(found) not in (int, float):
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


_CHECKS: Mapping[pa.DataType, Check] = {
    pa.string(): _text_fault,
    pa.bool_(): _boolean_fault,
    pa.int32(): _whole_number("int", 32),
    pa.int64(): _whole_number("long", 64),
    pa.float32(): _float_fault,
    pa.float64(): _double_fault,
    pa.timestamp("us", tz="UTC"): _day_of(_TIME, "a time like 2026-01-31T12:00:00.123456Z (timestamp)"),
    pa.date32(): _day_of(_DATE, "a day like 2026-01-31 (date)"),
}
