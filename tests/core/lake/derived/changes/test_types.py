"""Values of a followed table in other types."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from kgs_core.errors import ConfigError
from kgs_core.lake.derived.changes.types import as_type, type_of

AT = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
SCALED = pa.struct([("scale", pa.int32()), ("value", pa.binary())])


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (pa.array([1714979289123, None], pa.int64()), "timestamp_ms", [AT.replace(microsecond=123000), None]),
        (pa.array([1714979289123456, 9223372036825200000]), "timestamp_us", [AT, None]),
        (pa.array([1714979289123456789, -1]), "timestamp_ns", [AT, BEFORE_1970]),
        (pa.array([10956, -2147472692], pa.int32()), "date", [date(1999, 12, 31), None]),
        (pa.array(["1999-12-31", "0000-00-00"]), "date", [date(1999, 12, 31), None]),
        (pa.array(["2024-05-06 07:08:09.123456", "-infinity", None]), "timestamp", [AT, None, None]),
        (
            pa.array(["+10000-01-01T00:00:00Z", "-0043-03-15T00:00:00Z", "0000-12-31T00:00:00Z"]),
            "timestamp",
            [None] * 3,
        ),
        (pa.array(["+10000-01-01", "-0043-03-15"]), "date", [None, None]),
        (pa.array(["2024-05-06T09:08:09.123456+02:00"]), "timestamp", [AT]),
        (pa.array(["2024-05-06"]), "timestamp", [datetime(2024, 5, 6, tzinfo=UTC)]),
        (pa.array([b"\x04\xe2", b"\xff", None]), "decimal(10,2)", [Decimal("12.50"), Decimal("-0.01"), None]),
        (
            pa.array([{"scale": 6, "value": b"\x12\xd6\x87"}, None], SCALED),
            "decimal(38,6)",
            [Decimal("1.234567"), None],
        ),
        (pa.array(["12.50"]), "decimal(10,2)", [Decimal("12.50")]),
        (pa.array(["7", None]), "long", [7, None]),
        (pa.array(["1", "false"]), "boolean", [True, False]),
    ],
)
def test_values_in_the_types_of_the_rule(values, kind, expected):
    for column in (values, pa.chunked_array([values.slice(0, 1), values.slice(1)])):
        found = as_type("c", column, kind)
        assert (found.type, found.to_pylist()) == (type_of(kind), expected)


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        (pa.array(["x"]), "long", r"types: column c \(string\) has a value that is no long: .*: give another type"),
        (pa.array(["tomorrow"]), "timestamp", "has a value that is no timestamp"),
        (pa.array([1]), "timestamp", "column c has numbers: write timestamp_ms or timestamp_us or timestamp_ns"),
        (pa.array([b"\x7f\xff"]), "decimal(3,2)", "has a value that is no decimal"),
        (pa.array([2**62]), "timestamp_ms", "has a value that is no timestamp_ms"),
    ],
)
def test_a_value_that_does_not_fit_is_named(values, kind, words):
    with pytest.raises(ConfigError, match=words):
        as_type("c", values, kind)
