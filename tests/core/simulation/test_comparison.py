"""Scores, fronts and the bill on figures that can be checked by hand."""

from random import Random

import pytest

from kgs_core.model import TopicPartition
from kgs_core.packing import ALGORITHMS
from kgs_core.simulation.comparison import (
    PUBLISHED,
    Replayed,
    cardinal_bin_score,
    least_consumers,
    pareto_front,
    summarize,
)
from kgs_core.simulation.latency import Stretch
from kgs_core.simulation.replay import Conditions, Step, replay, strategy_of
from kgs_core.simulation.workload import Workload

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def replayed(name, *consumers, workload="w", rscores=None):
    prices = rscores or [0.0] * len(consumers)
    steps = [Step(2, 1.5, 2, z, price, 1) for z, price in zip(consumers, prices, strict=True)]
    return Replayed(name, workload, None, steps)


def test_cbs_is_the_mean_of_each_measurements_share():
    assert cardinal_bin_score([10, 12, 11], [10, 10, 11]) == pytest.approx((0 + 0.2 + 0) / 3)
    assert cardinal_bin_score([0, 3], [0, 3]) == 0


def test_the_least_is_over_the_published_algorithms_only():
    twelve = [replayed(name, 10 + number, 20 - number) for number, name in enumerate(PUBLISHED)]
    better = replayed("kafka:1", 1, 1)
    assert least_consumers([*twelve, better]) == {"w": [10, 9]}
    assert least_consumers(twelve[1:]) == {}


def test_published_is_what_is_registered_under_these_names():
    assert set(PUBLISHED) <= set(ALGORITHMS)
    assert len(PUBLISHED) == 12


def test_front_keeps_what_nothing_beats():
    points = {"a": (0.0, 9.0), "b": (0.1, 5.0), "c": (0.1, 6.0), "d": (0.2, 5.0), "e": (0.3, 1.0), "f": (0.3, 1.0)}
    assert pareto_front(points) == ["a", "b", "e", "f"]


def test_summary_and_bill():
    """Three and two consumers for 30 s each; 200 of 1000 samples late, a sample being C/100."""
    steps = [
        Step(2, 1.2, 2, 3, 0.0, 0),
        Step(2, 1.4, 2, 2, 0.5, 1, [Stretch(5.0, 0.0, 200), Stretch(0.0, 0.0, 800)]),
    ]
    conditions = Conditions(capacity_bytes_per_s=1e6, record_latency=True)
    (found,) = summarize([Replayed("mwf", "w", None, steps)], conditions)
    assert (found.mean_consumers, found.average_rscore, found.rscore_total, found.moved) == (2.5, 0.25, 0.5, 1)
    assert found.cbs is None
    assert found.consumer_hours == pytest.approx(5 * 30 / 3600)
    assert found.least_consumer_hours == pytest.approx(4 * 30 / 3600)
    assert found.bytes_delayed == pytest.approx(200 * 1e4)
    assert (found.latency.mean_s, found.latency.p95_s, found.latency.delayed_share) == (1.0, 5.0, 0.2)
    (silent,) = summarize([replayed("mwf", 1)], Conditions(record_latency=True))
    assert {silent.latency.mean_s, silent.latency.p99_s, silent.latency.p90_delayed_s} == {None}, "unknown, not zero"
    assert silent.latency.delayed_share is None


def test_a_replay_counts_what_it_moves_at_the_new_speeds():
    """b joins a at 2, because both fit there now; 30 of 100 is moved."""
    workload = Workload("w", 100, [{A: 60.0, B: 70.0}, {A: 60.0, B: 30.0}])
    conditions = Conditions()
    steps = list(replay(workload, strategy_of("bfd", workload, conditions, Random(1)), conditions))
    assert [(s.consumers, s.least, s.moved, s.rscore) for s in steps] == [(2, 2, 0, 0.0), (1, 1, 1, 0.3)]
