"""Kafka without a packer: dealt once, and scaled by lag."""

import json
import shlex
from random import Random

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kgs_core as kgs
from kgs_core.cli.main import cli
from kgs_core.errors import ConfigError
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.simulation.baselines import BASELINES
from kgs_core.simulation.keda import Keda, share_evenly
from kgs_core.simulation.latency import LatencySettings
from kgs_core.simulation.replay import Conditions, check_name, replay, strategy_of
from kgs_core.simulation.round_robin import RoundRobin
from kgs_core.simulation.strategies import Baseline, Placement
from kgs_core.simulation.workload import Workload
from tests.cases import cases

TPS = [TopicPartition("t", n) for n in range(40)]


def consumers_over_time(loads, partitions=20):
    """Keda's number of consumers while the whole load, in consumers of capacity C, is shared out evenly."""
    keda, current, found = Keda(LatencySettings(), 100), {}, []
    for load in loads:
        speeds = dict.fromkeys(TPS[:partitions], 100 * load / partitions)
        placement = keda.place(speeds, current)
        assert set(placement.assignment) == set(speeds)
        assert placement.consumers >= len(set(placement.assignment.values()))
        current = placement.assignment
        found.append(placement.consumers)
    return found


def test_round_robin_deals_in_the_order_of_the_first_measurement_and_never_moves():
    workload = Workload("w", 100, [{TPS[3]: 1.0, TPS[0]: 90.0, TPS[1]: 80.0}, {TPS[0]: 0.0, TPS[1]: 1.0, TPS[3]: 99.0}])
    strategy = strategy_of("kafka:2", workload, Conditions(), Random(1))
    assert strategy.place(workload.measurements[0], {}).assignment == {TPS[3]: 1, TPS[0]: 2, TPS[1]: 1}
    assert [(s.consumers, s.rscore, s.moved) for s in replay(workload, strategy, Conditions())] == [(2, 0.0, 0)] * 2
    later = RoundRobin(3, TPS[:2]).place(dict.fromkeys(TPS[:4], 1.0), {})
    assert later.assignment == {TPS[0]: 1, TPS[1]: 2, TPS[2]: 3, TPS[3]: 1}, "who comes later goes to whose turn it is"
    assert RoundRobin(9, TPS[:2]).place(dict.fromkeys(TPS[:2], 1.0), {}).consumers == 9, "all run"


def test_shuffled_orders_are_drawn():
    workload = Workload("w", 100, [dict.fromkeys(TPS, 1.0)])

    def dealt_by(seed):
        strategy = strategy_of("kafka:4", workload, Conditions(), Random(seed), shuffled=True)
        return strategy.place(workload.measurements[0], {})

    dealt = [dealt_by(seed) for seed in (1, 1, 2)]
    assert dealt[0] == dealt[1] != dealt[2]
    assert sorted(dealt[2].assignment.values()) == sorted([1, 2, 3, 4] * 10)


@pytest.mark.parametrize(
    "name", ["kafka:0", "kafka:", "kafka", "kafka:-1", "kafka:x", "kafka:1.5", "keda:3", "keda:", "best", ""]
)
def test_other_names_are_refused(name):
    with pytest.raises(ConfigError, match=r"kafka:CONSUMERS or keda"):
        check_name(name)


class Together:
    """All at the consumer of this number."""

    def __init__(self, consumer):
        self._consumer = consumer

    def place(self, speeds, current):
        return Placement(dict.fromkeys(speeds, ConsumerId(self._consumer)), self._consumer)


def test_a_new_baseline_is_a_line_in_the_table(monkeypatch):
    load = [{("t", 0): 1.0, ("t", 1): 2.0}] * 2
    with pytest.raises(ConfigError, match="'one:7'"):
        kgs.simulate(load, baselines=["one:7"], capacity=10)
    together = Baseline("one", "all at one", lambda n, *_: Together(int(n)), "NUMBER", str.isdigit)
    monkeypatch.setitem(BASELINES, "one", together)
    found = kgs.simulate(load, algorithms=["bfd"], baselines=["one:7"], capacity=10).to_frame()
    assert found.loc["one:7", "mean_consumers"] == 7
    with pytest.raises(ConfigError, match=r"'one': write .* or one:NUMBER"):
        kgs.simulate(load, baselines=["one"], capacity=10)
    result = CliRunner().invoke(cli, shlex.split("simulate mwf --baseline one:7 --orders 2 --steps 1 --no-cbs --json"))
    rows = json.loads(result.stdout)["results"]
    assert [row["algorithm"] for row in rows] == ["mwf", "one:7"]
    assert not [row for row in rows if "shuffled_orders" in row], "its order changes nothing"


@cases(
    ("loads", "partitions", "expected"),
    {
        "a steady load needs as many as the bound": ([4.5] * 40, 20, dict.fromkeys(range(40), 5)),
        "upwards it at most doubles in 15 s or adds four": ([1.0, 40.0, 40.0, 40.0], 40, {0: 1, 1: 1, 2: 10}),
        "downwards it waits for the stabilization window": ([8.0] * 12 + [2.0] * 20, 20, {22: 8, -1: 2}),
        "5.4 consumers' worth of lag at 5 is 8 % more than wanted, within the tolerance": (
            [5.0] * 3 + [5.4] * 10,
            20,
            {-1: 5},
        ),
        "5.6 is 12 %": ([5.0] * 3 + [5.6] * 10, 20, {-1: 6}),
        "never more than partitions": ([30.0] * 60, 6, {-1: 6}),
        "it never gives up the last one": ([0.0] * 40, 20, {-1: 1}),
    },
)
def test_scaled_by_lag(loads, partitions, expected):
    found = consumers_over_time(loads, partitions)
    assert {at: found[at] for at in expected} == expected
    assert max(found) <= partitions


def test_growth_is_followed_a_poll_later_and_a_backlog_overshoots():
    found = consumers_over_time([4.0] * 5 + [9.0] * 30)
    assert found[5] == 4
    assert found[6] >= 9
    assert max(found) > 9
    assert found[-1] == 10  # one less would do, but is within the tolerance


holders = st.dictionaries(st.sampled_from(TPS), st.integers(1, 12), max_size=40)


@given(holders, st.sets(st.sampled_from(TPS)), st.integers(1, 12))
def test_sharing_evenly_moves_no_more_than_it_must(current, there, consumers):
    speeds = dict.fromkeys(there, 1.0)
    found = share_evenly(speeds, current, consumers)
    counts = [sum(c == n for c in found.values()) for n in range(1, consumers + 1)]
    assert set(found) == there
    assert max(counts) - min(counts) <= 1
    held = sorted((sum(current.get(p) == n for p in there) for n in range(1, consumers + 1)), reverse=True)
    each, more = divmod(len(there), consumers)
    stay = sum(min(count, each + (rank < more)) for rank, count in enumerate(held))
    assert sum(found[p] == current.get(p) for p in there) == stay
