"""A pass of the benchmark that measured nothing is no figure."""

import pytest

from kgs_core.benchmarks.ingest import IngestPlan, check_pass
from kgs_core.errors import PermanentError

PLAN = IngestPlan(records_mb=200, pass_s=15.0)
PASS = {"batch_s": [0.1, 0.1], "records": 1000, "consumed_bytes": 200_000_000, "elapsed_s": 1.0}


@pytest.mark.parametrize("change", [{}, {"consumed_bytes": 50_000_000, "elapsed_s": 15.1}])
def test_pass_is_over_when_enough_is_read_or_time_is_up(change):
    check_pass(PLAN, "arrow", {**PASS, **change}, committed=1000)


@pytest.mark.parametrize(
    ("change", "committed", "says"),
    [
        ({}, 999, "its tables have 999"),
        ({"batch_s": []}, 1000, "in 0 batches"),
        ({"consumed_bytes": 84_000_000, "elapsed_s": 1.5}, 1000, "ran out after 84 of 200 MB"),
    ],
)
def test_pass_that_measured_something_else_is_refused(change, committed, says):
    with pytest.raises(PermanentError, match=says):
        check_pass(PLAN, "arrow", {**PASS, **change}, committed)
