"""What the table of `kgs status` says of figures that are not known."""

from dataclasses import replace

import pytest

from kgs_core.cli.group.status_table import alarms, headline, remarks
from kgs_core.lake.rule.completeness import Completeness
from kgs_core.reporting.consumer_rows import ExternalFacts
from kgs_core.reporting.metric_samples import LakeFigures, samples
from kgs_core.reporting.status_json import status_values
from tests.core.cli.group.test_status import LINES, group, words


@pytest.mark.parametrize(
    ("lag", "said"),
    [
        ({"lag": 12}, "lag 12 records"),
        ({"lag": None, "known_lag": 0, "lag_unknown_partitions": 3}, "lag 0, of 3 partitions not known"),
        ({"lag": None, "known_lag": 1200, "lag_unknown_partitions": 1}, "lag 1,200, of 1 partition not known"),
        ({"lag": None, "known_lag": None, "lag_unknown_partitions": 2}, "lag ? records"),
    ],
)
def test_a_partition_whose_lag_is_not_known_hides_no_other(lag, said):
    found = group(**lag)
    assert headline(found).plain.endswith(said)
    values = status_values(found)
    assert [values[key] for key in ("lag", "known_lag", "lag_unknown_partitions")] == [
        lag["lag"], lag.get("known_lag"), lag.get("lag_unknown_partitions", 0),
    ]  # fmt: skip
    row = replace(LINES[0], **lag)
    assert {12: "12", 0: "0+?", 1200: "1,200+?", None: "?"}[lag["lag"] or lag.get("known_lag")] in words(
        group(consumers=(row,)), "1 "
    )


def test_class_and_capacity_are_shown_if_a_consumer_has_a_class():
    plain, large = LINES[0], replace(LINES[0], consumer=2, consumer_class="large", capacity=2.2e6)
    assert "capacity" not in words(group(consumers=(plain,)), "consumer ")
    assert words(group(consumers=(plain, large)), "consumer ")[:3] == ["consumer", "class", "capacity"]
    assert words(group(consumers=(plain, large)), "2 ")[:3] == ["2", "large", "2.200"]
    assert status_values(group(consumers=(large,)))["consumers"][0]["class"] == "large"
    assert "class" not in status_values(group(consumers=(plain,)))["consumers"][0]


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([], None),
        ([("b", 60_000), ("a", 0)], "complete: a until 1970-01-01 00:00:00Z, b until 1970-01-01 00:01:00Z"),
        ([("a", None), ("b", None)], "complete: not known of 2 tables (`kgs complete` says why)"),
        (
            [(str(n), n * 1000) for n in range(7)] + [("x", None)],
            "complete: 0 until 1970-01-01 00:00:00Z, 1 until 1970-01-01 00:00:01Z, 2 until 1970-01-01 00:00:02Z, "
            "3 until 1970-01-01 00:00:03Z, 4 until 1970-01-01 00:00:04Z, 2 more until later, not known of 1 table "
            "(`kgs complete` says why)",
        ),
    ],
)
def test_how_far_tables_are_complete_is_a_line_and_unknown_is_no_time(tables, said):
    found = group(facts=ExternalFacts(complete=tuple(Completeness(name, at, 60.0) for name, at in tables)))
    assert [line for line in remarks(found) if line.startswith("complete")] == ([said] if said else [])
    assert [each["complete_until"] is None for each in status_values(found)["complete"]] == [
        at is None for _, at in tables
    ]
    told = [
        (s.labels, s.value) for s in samples(found, LakeFigures()) if s.metric == "kgs_table_complete_until_seconds"
    ]
    assert told == [((name,), at / 1000) for name, at in tables if at is not None]


def test_the_lag_of_newest_rows_is_shown_and_too_much_of_it_is_an_alarm():
    found = group(facts=replace(group().facts, newest_rows={"gold/a": (3.0, 30.0), "gold/b": (None, 30.0)}))
    assert "newest rows: gold/a 3.0 s behind, gold/b ? behind" in list(remarks(found))
    assert not [line for line in alarms(found) if "gold/" in line]
    late = group(facts=replace(group().facts, newest_rows={"gold/a": (95.0, 30.0)}))
    [said] = [line for line in alarms(late) if "gold/" in line]
    assert "table gold/a: its newest rows are 95.0 s behind, more than max_lag_s (30.0 s)" in said
    assert status_values(late)["newest_rows"] == {"gold/a": {"lag_s": 95.0, "max_lag_s": 30.0}}
    assert not [line for line in remarks(group()) if "newest" in line]
