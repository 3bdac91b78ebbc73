"""A pass of the benchmark that measured nothing is no figure."""

import pytest
import yaml

from bench.ingest import IngestPlan, check_pass, check_readers
from bench.records import kind_of_records
from bench.variants import Processor, Source
from kgs_core.config import parse_settings
from kgs_core.errors import ConfigError, PermanentError

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


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"records": "json-7"}, "'json-7': write json-1000, raw-1000 or json-100"),
        ({"records": "raw-1000"}, "only arrow reads them: add --no-peer --processor arrow"),
        ({"records": "raw-1000", "processors": ("arrow",)}, "add --no-peer"),
        ({"records": "raw-1000", "peer": False}, "--processor arrow"),
    ],
)
def test_records_that_somebody_cannot_read_are_refused_before_anything_starts(change, says):
    with pytest.raises(ConfigError, match=says):
        check_readers(IngestPlan(**change))


@pytest.mark.parametrize(("name", "columns"), [("json-1000", 8), ("raw-1000", 0), ("json-100", 5)])
def test_a_processor_reads_each_kind_of_records_by_a_rule_of_its_own(tmp_path, name, columns):
    check_readers(IngestPlan(records=name, processors=("arrow",), peer=False))
    processor = Processor("arrow", tmp_path, kind_of_records(name))
    opening = processor._opening(Source("127.0.0.1:9", "bench.", ["bench.01"], 1.0), 5_000_000)
    (rule,) = yaml.safe_load(opening["settings"])["topics"]
    assert len(rule.get("schema", {})) == columns
    assert rule["format"] == name.split("-")[0]
    parse_settings(opening["settings"].encode(), "bench", {})
