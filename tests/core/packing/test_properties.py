"""What holds of every algorithm in the registry, whatever the load."""

import math
from dataclasses import replace
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.group.invariants.assignments import check_assignment
from kgs_core.model import TopicPartition
from kgs_core.packing import ALGORITHMS, PackingProblem, rebalanced, rscore
from kgs_core.packing.search import packer, parts
from kgs_core.simulation.comparison import PUBLISHED
from tests.core.packing import reference
from tests.core.packing.conftest import GivenOrder

LIMITS = settings(max_examples=15)
CAPACITY = 100

partitions = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 12))
whole_speeds = st.dictionaries(partitions, st.integers(0, 130), max_size=24)
any_speeds = st.dictionaries(partitions, st.floats(0, 130), max_size=24)
consumers = st.integers(1, 9)


@st.composite
def problems(draw, speeds=whole_speeds, **given_options):
    chosen = draw(speeds)
    known = st.sampled_from(sorted(chosen)) if chosen else st.nothing()
    current = draw(st.dictionaries(known | partitions, consumers, max_size=24))
    return PackingProblem(chosen, CAPACITY, current, **{name: draw(given) for name, given in given_options.items()})


@st.composite
def bounded_problems(draw):
    """With every option in use."""
    plain = draw(problems())
    least = draw(st.integers(0, 6))
    quarantined = draw(st.frozensets(consumers, max_size=2))
    free = sorted(p for p in plain.speeds if plain.current.get(p, 0) not in {0, *quarantined})
    return PackingProblem(
        plain.speeds,
        CAPACITY,
        plain.current,
        pinned=draw(st.frozensets(st.sampled_from(free), max_size=4)) if free else frozenset(),
        spares=draw(st.frozensets(consumers, max_size=2)),
        quarantined=quarantined,
        min_consumers=least,
        max_consumers=draw(st.none() | st.integers(max(1, least), 8)),
    )


def pack(name, problem):
    return ALGORITHMS[name](problem, Random(0))


@pytest.mark.parametrize("name", ALGORITHMS)
@LIMITS
@given(problem=bounded_problems())
def test_with_all_options(name, problem):
    options_hold(name, problem)


@settings(LIMITS, max_examples=60)
@given(problem=bounded_problems(), consumer_weight=st.sampled_from([None, 0.3, 4.0]))
def test_with_all_options_when_searched_in_parts(problem, consumer_weight):
    """As it is with thousands of partitions, but with few."""
    with patch.multiple(parts, LARGE=3, PART=2), patch.object(packer, "LARGE", 3):
        options_hold("search", replace(problem, consumer_weight=consumer_weight))


def options_hold(name, problem):
    target = pack(name, problem)
    used = set(target.values())
    bound = problem.max_consumers
    assert check_assignment(target, problem.speeds, CAPACITY, max_consumers=bound, pinned=problem.pinned) == ()
    assert all(target[p] == problem.current[p] for p in problem.pinned)
    assert not used & problem.quarantined
    if bound is not None:
        assert len(used) <= max(bound, len({problem.current[p] for p in problem.pinned}))
    if not problem.pinned:
        assert len(used) >= min(problem.min_consumers, len(problem.speeds))


@pytest.mark.parametrize("name", ALGORITHMS)
@LIMITS
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_order_of_mappings_is_irrelevant(name, problem, seed):
    def mixed(mapping):
        return dict(Random(seed).sample(sorted(mapping.items()), len(mapping)))

    again = PackingProblem(mixed(problem.speeds), CAPACITY, mixed(problem.current))
    assert pack(name, again) == pack(name, problem)


@pytest.mark.parametrize("name", ALGORITHMS)
@LIMITS
@given(problem=problems(speeds=any_speeds))
def test_each_partition_once_and_none_above_capacity_without_need_in_any_unit(name, problem):
    target = pack(name, problem)
    assert check_assignment(target, problem.speeds, CAPACITY) == ()
    doubled = PackingProblem({p: 2 * s for p, s in problem.speeds.items()}, 2 * CAPACITY, problem.current)
    assert pack(name, doubled) == target


@pytest.mark.parametrize("name", PUBLISHED)
@settings(LIMITS, max_examples=60)
@given(problem=problems())
def test_fast_structures_agree_with_plain_lists(name, problem):
    expected = {p: number for number, held in reference.pack(name, problem).items() for p in held}
    assert ALGORITHMS[name](problem, GivenOrder()) == expected


@pytest.mark.parametrize("name", ALGORITHMS)
@LIMITS
@given(problem=problems())
def test_rscore_of_a_packing(name, problem):
    target = pack(name, problem)
    least = math.ceil(sum(min(speed, CAPACITY) for speed in problem.speeds.values()) / CAPACITY)
    assert least <= len(set(target.values())) <= len(problem.speeds)
    cost = rscore(problem.current, target, problem.speeds, CAPACITY)
    assert 0 <= cost <= sum(problem.speeds.values()) / CAPACITY + 1e-9
    assert (cost == 0) == all(problem.speeds[p] == 0 for p in rebalanced(problem.current, target))
    assert rscore(target, target, problem.speeds, CAPACITY) == 0
    assert rscore({}, target, problem.speeds, CAPACITY) == 0
