"""How far the packers are from what is proven to be best, and what is to be gained by knowing the future.

`pytest tests/core/packing/test_yardstick.py -m '' -s` prints the tables of docs/packing.md.
"""

from contextlib import nullcontext
from dataclasses import replace
from random import Random
from statistics import mean
from unittest.mock import patch

import pytest

from kgs_core.packing import ALGORITHMS, PackingProblem, rscore
from kgs_core.packing.search import packer
from kgs_core.simulation.streams import generate
from kgs_core.simulation.workload import CAPACITY, StreamSpec
from tests.core.packing.optimum import least_cost, least_moved

pytestmark = pytest.mark.slow

CONSUMER_WEIGHT = 130
"""Of a consumer, in per cent of C: the default."""
BEFORE = 8
"""Packings before the one that is judged."""
DELTAS = (5, 10, 25)
PACKERS = ("search", "keep", "mwf")


def moved(problem, target):
    """In per cent of C, as all is counted here."""
    return round(100 * rscore(problem.current, target, problem.speeds, problem.capacity))


def cost(problem, target):
    """What a step is weighed by, but for the look ahead."""
    return CONSUMER_WEIGHT * len(set(target.values())) + moved(problem, target)


def packed(name, problem):
    """`search, calm` looks at this step alone."""
    with patch.object(packer, "_outlook", lambda _: 0.0) if name == "search, calm" else nullcontext():
        return ALGORITHMS[name.partition(",")[0]](problem, Random(0))


class Stream:
    """Measurements one after the other, with what a packer knows: who reads what, and the speeds of the last time."""

    def __init__(self, measurements):
        self.ahead = list(measurements)
        self.current = {}
        self._earlier = {}

    def problem(self):
        earlier, self._earlier = self._earlier, self.ahead.pop(0)
        return PackingProblem(self._earlier, CAPACITY, self.current, earlier=earlier)


def reached(size, seed, steps=1):
    """A stream after some packings by one of the packers; `steps` are left."""
    spec = StreamSpec(DELTAS[seed % 3], "uniform", seed, BEFORE + steps - 1, size, 2)
    stream = Stream(generate(spec, Random(spec.key)).measurements)
    for _ in range(BEFORE):
        stream.current = packed(PACKERS[seed // 3 % 3], stream.problem())
    return stream


def judged(problem):
    """Cost of the proven best and of each packer's plan."""
    costs = {name: cost(problem, packed(name, problem)) for name in ("search, calm", *PACKERS)}
    best = least_cost(problem.current, [problem.speeds], CONSUMER_WEIGHT, min(costs.values()))
    assert best.proven
    (plan,) = best.plans
    assert cost(problem, plan) == best.cost
    assert all(sum(problem.speeds[p] for p in plan if plan[p] == c) <= CAPACITY for c in set(plan.values()))
    return best.cost, costs


@pytest.mark.parametrize(
    ("size", "calm_gap", "gap"), [(20, 0.3, 3.5), (40, 0.9, 2.0), pytest.param(60, 0.9, 2.0, marks=pytest.mark.soak)]
)
def test_cost_of_one_step(size, calm_gap, gap):
    rows = [judged(reached(size, seed).problem()) for seed in range(9)]
    gaps = {name: [100 * (costs[name] / best - 1) for best, costs in rows] for name in rows[0][1]}
    print(f"\n{size} partitions, {len(rows)} steps; cost above the optimum, per cent of it")
    for name, values in gaps.items():
        print(f"  {name:12}  mean {mean(values):5.2f}  worst {max(values):5.2f}  optimal {values.count(0.0)}")
    assert min(map(min, gaps.values())) >= 0
    assert mean(gaps["search, calm"]) <= calm_gap
    assert mean(gaps["search"]) <= gap
    assert mean(gaps["search, calm"]) < min(mean(gaps["keep"]), mean(gaps["mwf"]))


@pytest.mark.parametrize(("size", "gap"), [(20, 5.0), (40, 7.0), pytest.param(60, 7.0, marks=pytest.mark.soak)])
def test_moves_of_one_step_at_the_fewest_consumers(size, gap):
    best, rows = 0, {"search, calm": 0, "search": 0, "bfd": 0}
    for seed in range(4):
        problem = replace(reached(size, seed).problem(), consumer_weight=None)
        plans = {name: packed(name, problem) for name in rows}
        fewest = len(set(plans["bfd"].values()))
        assert all(len(set(plan.values())) <= fewest for plan in plans.values())
        costs = {name: moved(problem, plan) for name, plan in plans.items()}
        optimum = least_moved(problem, fewest, min(costs.values()))
        assert optimum.proven
        best += optimum.cost
        rows = {name: rows[name] + costs[name] for name in rows}
    gaps = {name: 100 * (total / best - 1) for name, total in rows.items()}
    print(f"\n{size} partitions, 4 steps at the fewest consumers; Rscore in all {best / 100}, above that in per cent")
    print("  " + "  ".join(f"{name} {value:.1f}" for name, value in gaps.items()))
    assert min(gaps.values()) >= 0
    assert max(gaps["search"], gaps["search, calm"]) <= gap


@pytest.mark.parametrize(("size", "steps", "gap"), [(10, 5, 1.5), (14, 3, 2.5)])
def test_what_knowing_the_future_would_save(size, steps, gap):
    """Against one who knows all measurements, and that nothing comes after the last: no packer can do as well."""
    gaps = {"search": [], "search, calm": [], "one by one": []}
    for seed in range(6):
        spent = {name: followed(name, size, seed, steps) for name in gaps}
        stream = reached(size, seed, steps)
        best = least_cost(stream.current, stream.ahead, CONSUMER_WEIGHT, min(spent.values()))
        assert best.proven
        for name, total in spent.items():
            gaps[name].append(100 * (total / best.cost - 1))
    print(f"\n{size} partitions, {len(gaps['search'])} times {steps} steps; above who knows the future, per cent")
    print("  " + "  ".join(f"{name} {mean(values):.2f}" for name, values in gaps.items()))
    assert min(map(min, gaps.values())) >= 0
    assert mean(gaps["search"]) <= gap


def followed(name, size, seed, steps):
    """What all steps cost; `one by one`: each with its own optimum."""
    stream, total = reached(size, seed, steps), 0
    for _ in range(steps):
        problem = stream.problem()
        plan = packed("search" if name == "one by one" else name, problem)
        if name == "one by one":
            plan = least_cost(problem.current, [problem.speeds], CONSUMER_WEIGHT, cost(problem, plan)).plans[0]
        total += cost(problem, plan)
        stream.current = plan
    return total
