"""Gauges tell how the group is now; what is not known has no sample."""

from dataclasses import replace

import pytest

from kgs_core.group.protocol import Change, DesiredState, FlatOut, Idle, RunState
from kgs_core.metrics import METRICS
from kgs_core.planning.load import Load
from kgs_core.reporting.metric_samples import LakeFigures, samples
from tests.core.reporting.test_status import ONE, TARGET, TWO, A, B, C, group, report, seen

HOUR_MS = 3_600_000
FLAT_OUT = FlatOut(92.0, 300.0, 0.0, 1000, 100, {"t": 100}, "x")
FLAT_OUT_GROUP = group(report(ONE, A, flat_out=FLAT_OUT), report(TWO, C))
FLAT_OUT_LOAD = {"load": Load({A: 100.0, B: 1.0, C: 1.0}, bytes_per_offset={"t": 1.0})}
NO_CAPACITY = {"packing_capacity_bytes_per_s": None, "consumer_capacity_bytes_per_s": None}
BUDGET = {"packing": {"max_rscore_per_hour": 2.0}}
HAS_MOVED = group(target=replace(TARGET, history=(Change(0, "x", 1, 0.5, 1),)))
STANDS_STILL = report(ONE, A, stopped={A: "why"})
OF_THREE = {"load": Load({A: 10.0, B: 200.0, C: 5.0}, age_s=1.0), "lags": {A: 3, B: None, C: 0}}
OF_A, OF_B = {"kgs_table_rows": 5, "kgs_table_dead_letters_total": 1}, {"kgs_table_rows": None, "kgs_table_files": 1}
LAKE = LakeFigures({"a": OF_A, "b": OF_B}, {A: 9}, {A: 0.0})


def values(found, lake=LakeFigures()):  # noqa: B008 - immutable
    """`name label ...` -> value, without the prefix `kgs_`."""
    every = list(samples(found, lake))
    assert len({(s.metric, s.labels) for s in every}) == len(every), "a series twice"
    for sample in every:
        assert len(sample.labels) == len(METRICS[sample.metric].labels), sample
    return {" ".join((s.metric.removeprefix("kgs_"), *s.labels)): s.value for s in every}


def test_of_a_group_that_is_idle_only_what_the_lake_lacks_is_unread():
    idle = replace(TARGET, assignment={}, speeds={}, idle=Idle(0, {A: 3, B: 1, C: 0}, {"t": "1"}))
    found = values(seen(group(target=idle), load=Load({A: 0.0, B: 0.0}, age_s=1.0), lags={A: 0, B: 1}))
    states = {name for name, value in found.items() if name.startswith("partition_state") and value}
    assert states == {"partition_state t 0 idle", "partition_state t 1 unread"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (seen(group(STANDS_STILL, report(TWO, C)), **OF_THREE), {
            "partition_state t 0 stopped": 1, "partition_state t 0 owned": 0, "partition_state t 1 unread": 1,
            "partition_state t 2 owned": 1, "partition_lag_records t 0": 3, "partition_lag_records t 1": None,
            "lag_unknown_partitions": 1, "hot_partitions": 1, "consumers_lower_bound": 3,
            "consumer_load_bytes_per_second 2": 5.0, "consumers joined": 2, "consumers wanted": 2, "controller_up": 1,
            "topics_consumed": 1,
        }),
        (seen(group(STANDS_STILL)), {"topics_consumed": 0}),
        (seen(group(report(ONE, A, B), report(TWO, C)), load=Load({A: 10.0}, age_s=1.0)), {
            "consumers_lower_bound": None, "consumer_load_bytes_per_second 1": None, "partition_speed_known t 0": 1,
            "partition_speed_known t 1": 0,
        }),
        (replace(seen(group()), quiet_until=""), {"forced_moves_only": 0}),
        (replace(seen(group()), quiet_until="20:00Z"), {"forced_moves_only": 1}),
        (replace(seen(group()), quiet_until="never"), {"forced_moves_only": 1}),
        (seen(FLAT_OUT_GROUP, **FLAT_OUT_LOAD), {"hot_partitions": 0}),
        (seen(FLAT_OUT_GROUP, packing=NO_CAPACITY, **FLAT_OUT_LOAD), {
            "hot_partitions": 1, "consumer_capacity_bytes_per_second consumer": 80,
            "consumer_capacity_bytes_per_second learnt": 80, "capacity_drift_ratio": None,
            "consumer_flat_out_bytes_per_second 1": 92.0,
        }),
        (seen(group(report(ONE, A, B), report(TWO, C, stopped={C: "corrupt"})), now=2000.0), {
            "consumers silent": 2, "partition_state t 0 unread": 1, "partition_state t 2 stopped": 0,
        }),
        (seen(HAS_MOVED, time_ms=HOUR_MS - 1, **BUDGET), {"rscore_budget_remaining": 1.5}),
        (seen(HAS_MOVED, time_ms=HOUR_MS, **BUDGET), {"rscore_budget_remaining": 2.0}),
        (seen(HAS_MOVED), {"rscore_budget_remaining": None}),
        (seen(group(DesiredState(RunState.PAUSED, "me", 0))), {
            "state running": 0, "state paused": 1, "state stopped": 0,
        }),
    ],
)  # fmt: skip
def test_what_a_look_tells(found, expected):
    """None: no sample, for it is not known."""
    told = values(found)
    assert {name: told.get(name) for name in expected} == pytest.approx(expected)


def test_tables_and_positions():
    found = values(seen(group(target=TARGET)), LAKE)
    expected = {"table_rows a": 5, "table_dead_letters_total a": 1, "partition_committed_offset t 0": 9}
    assert (expected | {"partition_lag_seconds t 0": 0.0}).items() <= found.items()
    assert found["table_files b"] == 1
    assert "table_rows b" not in found


def test_what_is_told_of_a_group_that_has_not_begun():
    assert {name.split()[0] for name in values(seen(group(target=None)))} == {
        "consumers",
        "consumer_capacity_bytes_per_second",
        "controller_up",
        "forced_moves_only",
        "lag_unknown_partitions",
        "state",
        "topics_consumed",
        "topics_with_bad_records",
    }
