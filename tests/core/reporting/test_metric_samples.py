"""Gauges tell how the group is now; what is not known has no sample."""

from dataclasses import replace

import pytest

from kgs_core.metrics import METRICS
from kgs_core.model import ConsumerId
from kgs_core.protocol import Change, DesiredState, FlatOut, RunState, Target
from kgs_core.reporting.consumer_rows import ExternalFacts
from kgs_core.reporting.metric_samples import LakeFigures, TableFigures, samples
from kgs_core.reporting.status import group_status
from tests.core.reporting.test_status import ONE, TARGET, TWO, A, B, C, group, report, seen, settings

HOUR_MS = 3_600_000


NO_LAKE = LakeFigures()


def values(found, lake=NO_LAKE):
    every = list(samples(found, lake))
    assert len({(s.metric, s.labels) for s in every}) == len(every), "a series twice"
    for sample in every:
        assert len(sample.labels) == len(METRICS[sample.metric].labels), sample
    return {(s.metric, *s.labels): s.value for s in every}


def test_who_reads_what():
    view = group(report(ONE, A, stopped={A: "why"}), report(TWO, C))
    found = values(seen(view, speeds={A: 10.0, B: 200.0, C: 5.0}, measured_age_s=1.0, lags={A: 3, B: None, C: 0}))
    assert found["kgs_partition_state", "t", "0", "stopped"] == 1
    assert found["kgs_partition_state", "t", "0", "owned"] == 0
    assert found["kgs_partition_state", "t", "1", "unread"] == 1
    assert found["kgs_partition_state", "t", "2", "owned"] == 1
    assert found["kgs_partition_lag_records", "t", "0"] == 3
    assert ("kgs_partition_lag_records", "t", "1") not in found
    assert found["kgs_lag_unknown_partitions",] == 1
    assert found["kgs_hot_partitions",] == 1
    assert found["kgs_consumers_lower_bound",] == 3
    assert found["kgs_consumer_load_bytes_per_second", "2"] == 5.0
    assert (found["kgs_consumers", "joined"], found["kgs_consumers", "wanted"]) == (2, 2)
    assert found["kgs_controller_up",] == 1
    assert found["kgs_topics_consumed",] == 1
    idle = group(report(ONE, A, stopped={A: "why"}))
    assert values(seen(idle))["kgs_topics_consumed",] == 0, "its one partition stands still"


def test_what_is_not_known_has_no_sample():
    found = values(seen(group(report(ONE, A, B), report(TWO, C)), speeds={A: 10.0}, measured_age_s=1.0))
    assert "kgs_consumers_lower_bound" not in {name for name, *_ in found}
    assert "kgs_consumer_load_bytes_per_second" not in {name for name, *rest in found if rest == ["1"]}
    assert (found["kgs_partition_speed_known", "t", "0"], found["kgs_partition_speed_known", "t", "1"]) == (1, 0)
    none = values(seen(group(target=None)))
    assert {name for name, *_ in none} == {
        "kgs_consumers",
        "kgs_consumer_capacity_bytes_per_second",
        "kgs_controller_up",
        "kgs_forced_moves_only",
        "kgs_lag_unknown_partitions",
        "kgs_state",
        "kgs_topics_consumed",
        "kgs_topics_with_bad_records",
    }
    assert none["kgs_controller_up",] == 0


@pytest.mark.parametrize(("until", "value"), [("", 0), ("20:00Z", 1), ("never", 1)])
def test_a_quiet_window_is_told(until, value):
    assert values(replace(seen(group()), quiet_until=until))["kgs_forced_moves_only",] == value


def test_the_learnt_capacity_and_how_hot_is_hot():
    def found(**packing):
        flat_out = FlatOut(92.0, 300.0, 0.0, 1000, 100, {"t": 100}, "x")
        view = group(report(ONE, A, flat_out=flat_out), report(TWO, C))
        facts = ExternalFacts({A: 100.0, B: 1.0, C: 1.0}, 1.0, bytes_per_offset={"t": 1.0})
        return values(group_status(settings(**packing), view, facts, 1000.0, 0))

    measured, learnt = found(), found(capacity="learnt")
    for each in (measured, learnt):
        assert each["kgs_consumer_capacity_bytes_per_second", "consumer"] == 150
        assert each["kgs_consumer_capacity_bytes_per_second", "learnt"] == pytest.approx(80.0)
        assert each["kgs_capacity_drift_ratio",] == pytest.approx(80 / 150 - 1)
        assert each["kgs_consumer_flat_out_bytes_per_second", "1"] == 92.0
    assert (measured["kgs_hot_partitions",], learnt["kgs_hot_partitions",]) == (0, 1)


def test_a_silent_consumer_reads_nothing():
    found = values(seen(group(report(ONE, A, B), report(TWO, C, stopped={C: "corrupt"})), now=2000.0))
    assert found["kgs_consumers", "silent"] == 2
    assert found["kgs_partition_state", "t", "2", "stopped"] == 0, "another may read it by now"
    assert found["kgs_partition_state", "t", "0", "unread"] == 1


@pytest.mark.parametrize(("age_ms", "left"), [(HOUR_MS - 1, 1.5), (HOUR_MS, 2.0)])
def test_budget_that_is_left(age_ms, left):
    target = Target(
        "mwf", {A: ConsumerId(1)}, (), {}, 100.0, 0.5, "why", (), (), 5, history=(Change(0, "x", 1, 0.5, 1),)
    )
    view = group(target=target)
    found = values(seen(view, time_ms=age_ms, packing={"max_rscore_per_hour": 2.0}))
    assert found["kgs_rscore_budget_remaining",] == left
    assert ("kgs_rscore_budget_remaining",) not in values(seen(view, time_ms=age_ms))


def test_state_that_people_want():
    view = group(DesiredState(RunState.PAUSED, "me", 0))
    found = values(seen(view))
    assert {state: found["kgs_state", state] for state in ("running", "paused", "stopped")} == {
        "running": 0,
        "paused": 1,
        "stopped": 0,
    }


def test_tables():
    lake = LakeFigures((TableFigures("a", 5, 2, 100, 1, 7.0), TableFigures("b", None, 1, 10, None)), {A: 9}, {A: 0.0})
    found = values(seen(group(target=TARGET)), lake)
    assert found["kgs_table_rows", "a"] == 5
    assert found["kgs_table_dead_letters_total", "a"] == 1
    assert ("kgs_table_rows", "b") not in found
    assert (found["kgs_partition_committed_offset", "t", "0"], found["kgs_partition_lag_seconds", "t", "0"]) == (9, 0.0)
