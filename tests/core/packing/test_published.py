"""The published comparison in small: 200 partitions, steps of at most 10 % of a consumer."""

from random import Random

import pytest

from kgs_core.model import TopicPartition
from kgs_core.packing import ALGORITHMS, PackingProblem, rscore
from kgs_core.simulation import comparison

CAPACITY, DELTA, STEPS = 100, 10, 150
TWELVE = {name: ALGORITHMS[name] for name in comparison.PUBLISHED}
SEEDS = (1, 2, 3, 4)
PARTITIONS = [TopicPartition(topic, n) for topic in "ab" for n in range(100)]


def stream(random):
    """Landau 2022, section "Test Data Generation", s_i(p), with the upper bound that the published data has."""
    speeds = {p: random.randint(0, CAPACITY) for p in PARTITIONS}
    for _ in range(STEPS + 1):
        yield speeds
        speeds = {p: min(CAPACITY, max(0, s + random.randint(-DELTA, DELTA))) for p, s in speeds.items()}


def run(random):
    """Algorithm -> bins at each step, and algorithm -> average Rscore, over one stream."""
    bins = {name: [] for name in TWELVE}
    costs = dict.fromkeys(TWELVE, 0.0)
    current = {name: {} for name in TWELVE}
    for speeds in stream(random):
        for name, pack in TWELVE.items():
            target = pack(PackingProblem(speeds, CAPACITY, current[name]), random)
            costs[name] += rscore(current[name], target, speeds, CAPACITY) / (STEPS + 1)
            bins[name].append(len(set(target.values())))
            current[name] = target
    return bins, costs


@pytest.fixture(scope="module")
def scores():
    """Algorithm -> (cardinal bin score CBS, average Rscore E[R]), means over four streams."""
    found = dict.fromkeys(TWELVE, (0.0, 0.0))
    for seed in SEEDS:
        bins, costs = run(Random(seed))
        least = [min(step) for step in zip(*bins.values(), strict=True)]
        for name, (cbs, cost) in found.items():
            excess = sum((z - m) / m for z, m in zip(bins[name], least, strict=True)) / len(least)
            found[name] = cbs + excess / len(SEEDS), cost + costs[name] / len(SEEDS)
    return found


PUBLISHED = {
    "mwf": (0.1147, 11.79), "mbf": (0.0321, 18.88), "mbfp": (0.0034, 24.21), "mwfp": (0.1244, 16.96),
    "bfd": (0.0, 25.53), "ffd": (0.0010, 25.41), "wfd": (0.0041, 25.24), "nfd": (0.2409, 21.49),
}  # fmt: skip
"""For delta 10, start `uniform`, over 500 steps."""


@pytest.mark.slow
def test_ordering(scores):
    modified = [name for name in ALGORITHMS if name.startswith("m")]
    assert min(scores, key=lambda name: scores[name][0]) == "bfd"
    assert min(modified, key=lambda name: scores[name][0]) == "mbfp"
    assert min(scores, key=lambda name: scores[name][1]) == "mwf"


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_scores_are_near_the_published_ones(scores, name):
    """One stream differs from another by up to 0.01 of CBS and 5 % of E[R]; ours are four short ones, theirs is one."""
    cbs, cost = scores[name]
    assert cbs == pytest.approx(PUBLISHED[name][0], abs=0.015)
    assert cost == pytest.approx(PUBLISHED[name][1], rel=0.08)
