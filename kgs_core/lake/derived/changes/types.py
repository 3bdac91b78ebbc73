"""Values of a followed table in other types: producers write times as numbers, decimals as bytes, or all as texts."""

from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.config.rule.field_types import parse_type
from kgs_core.config.rule.newest_rows import TIME_UNITS
from kgs_core.errors import ConfigError
from kgs_core.lake.files.row_schema import TIMESTAMP, arrow_type

_NO_TIME = ("0000-00-00", "0000-00-00 00:00:00", "infinity", "-infinity")
"""What MySQL and PostgreSQL write where it is no time."""
_FAR_YEAR = r"^([+-]|0000-)"
"""How ISO 8601 begins where the year is before 1 or after 9999; PostgreSQL has such times."""
_YEARS = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z")
_MICROS = 1_000_000
_DATE_LENGTH = 10
_WIDE = Context(prec=1000)


def type_of(kind: str) -> pa.DataType:
    """The Arrow type of a column with this word in `types`."""
    return TIMESTAMP if kind in TIME_UNITS else arrow_type(parse_type(kind))


def as_type(name: str, column: pa.ChunkedArray | pa.Array, kind: str) -> pa.Array:
    """The column's values in the type of this word.

    Raises:
        ConfigError: a value that the type cannot have.
    """
    wanted = type_of(kind)
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    try:
        if kind in TIME_UNITS:
            return _possible(_times(found, TIME_UNITS[kind]))
        if pa.types.is_decimal(wanted) and (pa.types.is_binary(found.type) or pa.types.is_struct(found.type)):
            return pa.array([_decimal(value, wanted.scale) for value in found.to_pylist()], wanted)
        if pa.types.is_date(wanted) and pa.types.is_integer(found.type):
            return _possible(found.cast(pa.int32()).cast(pa.date32()))
        if pa.types.is_string(found.type) and pa.types.is_temporal(wanted):
            return _from_text(found, wanted)
        if pa.types.is_timestamp(wanted) and pa.types.is_integer(found.type):
            raise ConfigError([f"newest_rows: types: column {name} has numbers: write {' or '.join(TIME_UNITS)}"])
        return found.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ArithmeticError) as e:
        raise ConfigError(
            [f"newest_rows: types: column {name} ({found.type}) has a value that is no {kind}: {e}: give another type"]
        ) from e


def _times(found: pa.Array, per_s: int) -> pa.Array:
    numbers = found.cast(pa.int64())
    if per_s <= _MICROS:
        return pc.multiply_checked(numbers, _MICROS // per_s).cast(TIMESTAMP)
    part = per_s // _MICROS
    quotient = pc.divide(numbers, part)  # towards zero, which is later for times before 1970
    is_later = pc.and_(pc.less(numbers, 0), pc.not_equal(pc.multiply(quotient, part), numbers))
    return pc.subtract(quotient, is_later.cast(pa.int64())).cast(TIMESTAMP)


def _possible(times: pa.Array) -> pa.Array:
    """The times, null for what no calendar has: PostgreSQL's infinity is written as the greatest number."""
    low, high = (pa.scalar(each).cast(TIMESTAMP).cast(times.type, safe=False) for each in _YEARS)
    return pc.if_else(pc.and_(pc.greater_equal(times, low), pc.less_equal(times, high)), times, None)


def _from_text(found: pa.Array, wanted: pa.DataType) -> pa.Array:
    is_no_time = pc.or_(pc.is_in(found, pa.array(_NO_TIME)), pc.match_substring_regex(found, _FAR_YEAR))
    texts = pc.if_else(is_no_time, pa.scalar(None, pa.string()), found)
    if pa.types.is_date(wanted):
        return texts.cast(wanted)
    is_long = pc.greater(pc.utf8_length(texts), _DATE_LENGTH)
    has_zone = pc.and_(pc.match_substring_regex(texts, r"(Z|[+-]\d\d(:?\d\d)?)$"), is_long)
    texts = pc.if_else(is_long, texts, pc.binary_join_element_wise(texts, "00:00:00", " "))
    texts = pc.if_else(has_zone, texts, pc.binary_join_element_wise(texts, "Z", ""))
    return texts.cast(wanted)


def _decimal(value: Any, scale: int) -> Decimal | None:
    """From two's complement, the highest byte first; of a struct, with its own scale."""
    if isinstance(value, dict):
        scale, digits = int(value["scale"]), value["value"]
    else:
        digits = value
    return None if digits is None else Decimal(int.from_bytes(digits, "big", signed=True)).scaleb(-scale, _WIDE)
