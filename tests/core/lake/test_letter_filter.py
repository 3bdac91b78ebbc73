"""Which dead letters a choice means."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from kgs_core.lake.files.row_schema import TIMESTAMP
from kgs_core.lake.letters.letter_filter import letter_filter

TIMES = [*(datetime(2026, 11, day, tzinfo=UTC) for day in (1, 2, 3)), None]
LETTERS = pa.table(
    {
        "_partition": pa.array([0, 1, 0, 1], pa.int32()),
        "_timestamp": pa.array(TIMES, TIMESTAMP),
        "error": ["[not_json] x", "[wrong_type] column n: y", "not a JSON object", None],
    }
)


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({}, [0, 1, 2, 3]),
        ({"codes": ["not_json"]}, [0, 2]),
        ({"codes": ["not_json", "wrong_type"]}, [0, 1, 2]),
        ({"partitions": [1]}, [1, 3]),
        ({"since": "2026-11-02"}, [1, 2]),
        ({"since": "2026-11-02T00:30+01:00", "until": "2026-11-03"}, [1]),
        ({"partitions": [0], "codes": ["not_json"], "until": "2026-11-03T00:00"}, [0]),
    ],
)
def test_all_that_is_named_must_hold_and_a_record_without_a_time_is_at_none(options, meant):
    assert letter_filter(**options).chosen(LETTERS).equals(LETTERS.take(meant))
