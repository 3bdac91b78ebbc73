"""Bills: which time is compared, what moves cost, and what a load takes at a latency."""

from random import Random

import pytest

from kgs_core.group.view.handover_gaps import Handover
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.monitor.speeds.recorded import RecordedMeasurement
from kgs_core.reporting.usage import GroupUsage, Period
from kgs_core.simulation.at_p99 import costs_at, own_cost
from kgs_core.simulation.bill import Bill, Price, cost_of_moves, gaps_of, recorded_periods
from kgs_core.simulation.latency import LatencySettings
from kgs_core.simulation.recorded import recorded_workload
from kgs_core.simulation.replay import Conditions

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
HOUR = Period(0, 3_600_000)
C = 100.0


def measured(*times, **speeds):
    found = {A: speeds.get("a", 50.0), B: speeds.get("b", 20.0)}
    return [RecordedMeasurement(float(time), found) for time in times]


def handover(at_s, gap_s, partition=A, before=1, after=2):
    return Handover(partition, ConsumerId(before), ConsumerId(after), round(at_s * 1000), gap_s)


def test_measurements_stand_for_the_time_up_to_the_next_and_no_longer_than_an_interval_before_a_gap():
    found = recorded_periods(measured(0, 60, 121, 600, 660), 60.0, HOUR)
    assert found.periods == (Period(0, 181_000), Period(600_000, 720_000))
    assert gaps_of(found.periods, HOUR, 60.0) == (Period(181_000, 600_000), Period(720_000, 3_600_000))
    assert gaps_of((HOUR,), HOUR, 60.0) == ()


def test_a_measurement_that_knows_no_speed_is_a_gap_and_no_idle_minute():
    load = [*measured(0), RecordedMeasurement(60.0, {}), *measured(120)]
    found = recorded_periods(load, 60.0, Period(0, 180_000))
    assert [m.time for m in found.measurements] == [0.0, 120.0]
    assert found.periods == (Period(0, 60_000), Period(120_000, 180_000))


def test_what_moves_cost():
    """A, 50 bytes/s, unread for 4 s: 200 bytes, half a consumer moved, 2 s of a consumer to read them."""
    load = recorded_periods(measured(0, 60), 60.0, HOUR)
    found = cost_of_moves([handover(70, 4.0), handover(80, 2.0, B, before=3, after=3)], load, C)
    assert (found.moved, found.restarted, found.unread_s) == (1, 1, 6.0)
    assert found.rscore == pytest.approx(0.5)
    assert found.unread_bytes == pytest.approx(200 + 40)
    assert found.unread_byte_s == pytest.approx(50 * 16 / 2 + 20 * 4 / 2)
    assert found.iterations == pytest.approx(2.4)


@pytest.mark.parametrize("taken_s", [-5, 151, 4000])
def test_a_move_whose_speed_nobody_knows_costs_something_unknown(taken_s):
    load = recorded_periods(measured(0, 60), 60.0, HOUR)
    found = cost_of_moves([handover(taken_s, 4.0)], load, C)
    assert (found.moved, found.speed_unknown, found.unread_bytes) == (1, 1, 0.0)
    assert cost_of_moves([handover(taken_s, 4.0)], None, C).speed_unknown == 1


def bill(usage, **more):
    return Bill("g", HOUR, is_over=True, capacity=C, price=Price(0.5, "EUR"), usage=usage, **more)


def test_each_class_has_its_price_and_a_consumer_without_one_that_of_the_first():
    half, whole = Period(0, 1_800_000), HOUR
    by_class = {"": (half,), "large": (whole, whole), "small": (whole,)}
    usage = GroupUsage(lives=(half, whole, whole, whole), known_since_ms=0, by_class=by_class)
    found = Bill("g", HOUR, True, C, Price(0.1, "EUR", {"small": 0.1, "large": 0.18}), usage=usage).to_dict()
    assert found["used_cost"] == pytest.approx(0.05 + 0.36 + 0.1)
    assert found["used_by_class"]["large"] == {"consumer_hours": 2.0, "cost": pytest.approx(0.36)}
    plain = bill(usage).to_dict()
    assert plain["used_cost"] == pytest.approx(3.5 * 0.5)
    assert "used_by_class" not in plain


def test_nothing_is_known_before_the_first_report():
    found = bill(GroupUsage(lives=(Period(0, 3_600_000), Period(1_800_000, 3_600_000)), known_since_ms=1_800_000))
    assert found.known == Period(1_800_000, 3_600_000)
    assert found.used_hours == pytest.approx(1.0)
    assert found.to_dict()["used_cost"] == pytest.approx(0.5)


def test_no_report_at_all_is_unknown_and_not_zero():
    values = bill(GroupUsage()).to_dict()
    assert (values["used_consumer_hours"], values["used_cost"], values["known_s"]) == (None, None, 0)


def test_a_group_that_was_at_rest_has_used_nothing():
    assert bill(GroupUsage(known_since_ms=-1)).to_dict()["used_consumer_hours"] == 0.0


def test_a_bill_without_a_price_is_in_hours():
    found = Bill("g", HOUR, True, C, Price(), usage=GroupUsage((HOUR,), known_since_ms=0)).to_dict()
    assert (found["used_consumer_hours"], found["used_cost"]) == (1.0, None)


def a_load(partitions=12, steps=40):
    random = Random(3)
    tps = [TopicPartition("t", n) for n in range(partitions)]
    return recorded_workload("load", [
        RecordedMeasurement(60.0 * n, {tp: random.uniform(0, 60) for tp in tps}) for n in range(steps)
    ], C)  # fmt: skip


CONDITIONS = Conditions(C, LatencySettings(133.0, 60.0), record_latency=True)


def test_others_are_given_as_much_as_the_latency_takes():
    load = a_load()
    own = own_cost(load, CONDITIONS, "mbf", None, Random)
    assert own.least == tuple(-(-sum(speeds.values()) // C) for speeds in load.measurements)
    found = {cost.name: cost for cost in costs_at(own.p99_s, load, CONDITIONS, Random)}
    assert list(found) == ["kafka", "keda", "mwf"]
    for cost in found.values():
        assert cost.is_met == (cost.p99_s <= own.p99_s), cost.name
    assert found["kafka"].is_met
    assert len(set(found["kafka"].consumers)) == 1
    assert found["kafka"].summary.consumer_hours > own.summary.consumer_hours


def test_a_laxer_latency_takes_no_more_consumers():
    load = a_load()
    strict, lax = ({c.name: c for c in costs_at(p99_s, load, CONDITIONS, Random)} for p99_s in (0.5, 600.0))
    assert lax["kafka"].summary.consumer_hours < strict["kafka"].summary.consumer_hours
    assert all(cost.is_met for cost in lax.values())


def test_a_latency_that_nobody_reaches_is_said_so():
    """One partition above what a consumer reads: no number of consumers helps Kafka or anybody."""
    load = recorded_workload("hot", [RecordedMeasurement(60.0 * n, {A: 200.0, B: 10.0}) for n in range(20)], C)
    assert [cost.is_met for cost in costs_at(1.0, load, CONDITIONS, Random)] == [False] * 3


def test_an_idle_load_takes_next_to_nothing():
    load = recorded_workload("idle", [RecordedMeasurement(60.0 * n, {A: 0.0}) for n in range(3)], C)
    assert [(cost.is_met, cost.p99_s) for cost in costs_at(0.0, load, CONDITIONS, Random)] == [(True, 0.0)] * 3
