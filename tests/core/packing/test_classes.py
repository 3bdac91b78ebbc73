"""What holds of every algorithm when consumers are of several classes."""

from dataclasses import replace
from itertools import pairwise, product
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kgs_core.model import ConsumerId, TopicPartition, grouped
from kgs_core.packing import ALGORITHMS, Classes, PackingProblem, Size, pack_classes, rscore
from kgs_core.packing.search import packer, parts

LIMITS = settings(max_examples=40)
EPSILON = 1e-6
partitions = st.builds(TopicPartition, st.just("t"), st.integers(0, 14))
prices = st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0])
capacities = st.sampled_from([40.0, 100.0, 150.0, 220.0])
all_sizes = st.lists(st.builds(Size, capacities, prices), min_size=2, max_size=3).map(
    lambda found: dict(zip("abc", found, strict=False))
)


@st.composite
def groups(draw, current=True, free=True, few=False):
    """A problem, and the classes of its consumers; `few`: one that all packings can be tried for."""
    sizes = draw(all_sizes)
    speeds = draw(st.dictionaries(partitions, st.integers(0, 120), min_size=int(few), max_size=4 if few else 12))
    numbers = st.integers(1, 6).map(ConsumerId)
    at = draw(st.dictionaries(partitions, numbers, max_size=12)) if current else {}
    at = {p: c for p, c in at.items() if p in speeds}
    spares = draw(st.frozensets(st.integers(7, 9).map(ConsumerId), max_size=2)) if current else frozenset()
    names = st.sampled_from(sorted(sizes))
    of = {c: draw(names) for c in sorted({*at.values(), *spares})}
    options = {}
    if free:
        options = {
            "quarantined": draw(st.frozensets(numbers, max_size=1)),
            "min_consumers": draw(st.integers(0, 3)),
        }
        pinned = [p for p, c in sorted(at.items()) if c not in options["quarantined"]]
        options["pinned"] = frozenset(draw(st.lists(st.sampled_from(pinned), max_size=5))) if pinned else frozenset()
    capacity = sizes["a"].capacity
    weight = draw(st.sampled_from([0.3, 1.3, 4.0] if few else [None, 0.3, 1.3, 4.0]))
    problem = PackingProblem(speeds, capacity, at, spares=spares, consumer_weight=weight, **options)
    return problem, Classes(sizes, of)


def pack(name, problem, classes):
    return pack_classes(ALGORITHMS[name], problem, classes, lambda: Random(0))


def price(found, classes):
    return Classes(classes.sizes, found.classes).price(found.classes)


def holds(name, problem, classes):
    found = pack(name, problem, classes)
    assert found.assignment.keys() == problem.speeds.keys()
    assert found.classes.keys() == set(found.assignment.values())
    assert problem.quarantined.isdisjoint(found.classes)
    assert all(found.assignment[p] == problem.current[p] for p in problem.pinned)
    for consumer, name_ in found.classes.items():  # a number keeps its class
        assert classes.of.get(consumer, name_) == name_
    largest = max(size.capacity for size in classes.sizes.values())
    for consumer, mine in grouped((c, p) for p, c in found.assignment.items()).items():
        load = sum(problem.speeds[p] for p in mine)
        is_alone = len([p for p in mine if problem.speeds[p] > 0]) == 1 and load > largest
        if not problem.pinned.issuperset(mine) and not is_alone:
            assert load <= classes.sizes[found.classes[consumer]].capacity + EPSILON


def bins_hold(name, problem, unlike):
    problem = replace(problem, unlike=unlike)
    packed = ALGORITHMS[name](problem, Random(0))
    assert all(packed[p] == problem.current[p] for p in problem.pinned)
    for consumer, mine in grouped((c, p) for p, c in packed.items()).items():
        load = sum(problem.speeds[p] for p in mine)
        is_alone = len([p for p in mine if problem.speeds[p] > 0]) == 1 and load > problem.capacity
        if not problem.pinned.issuperset(mine) and not is_alone:
            assert load <= problem.capacity_of(consumer) + EPSILON
        assert consumer not in unlike or consumer in problem.current.values()


unlikes = st.dictionaries(st.integers(1, 9).map(ConsumerId), st.builds(Size, capacities, prices), max_size=6)


@pytest.mark.parametrize("name", ALGORITHMS)
@LIMITS
@given(group=groups(), unlike=unlikes)
def test_no_bin_is_above_its_own_size(name, group, unlike):
    bins_hold(name, group[0], unlike)


def test_half_of_a_larger_bin_fits_into_a_new_one():
    speeds = {TopicPartition("t", n): speed for n, speed in enumerate((0, 34, 35, 7))}
    current = {TopicPartition("t", 0): ConsumerId(2), TopicPartition("t", 3): ConsumerId(1)}
    problem = PackingProblem(speeds, 40.0, current, min_consumers=3)
    bins_hold("ff", problem, {ConsumerId(1): Size(100.0, 0.5)})


@settings(LIMITS, max_examples=100)
@given(group=groups(), unlike=unlikes)
def test_nor_when_searched_in_parts(group, unlike):
    with patch.multiple(parts, LARGE=3, PART=2), patch.object(packer, "LARGE", 3):
        bins_hold("search", group[0], unlike)


@pytest.mark.parametrize("name", ALGORITHMS)
@LIMITS
@given(group=groups())
def test_no_consumer_is_above_its_own_capacity(name, group):
    holds(name, *group)


@pytest.mark.parametrize("name", ALGORITHMS)
@LIMITS
@given(group=groups(current=False, free=False))
def test_costs_no_more_than_consumers_of_any_single_class(name, group):
    problem, classes = group
    found = pack(name, problem, classes)
    for size in classes.sizes.values():
        assume(all(speed <= size.capacity for speed in problem.speeds.values()))
        alone = PackingProblem(problem.speeds, size.capacity, {}, consumer_weight=problem.consumer_weight)
        count = len(set(ALGORITHMS[name](alone, Random(0)).values()))
        assert price(found, classes) <= count * size.price / classes.cheapest + EPSILON


@pytest.mark.parametrize("name", ALGORITHMS)
@LIMITS
@given(group=groups(), size=st.builds(Size, capacities, prices))
def test_equal_classes_are_no_classes(name, group, size):
    problem, classes = group
    plain = PackingProblem(
        problem.speeds,
        size.capacity,
        problem.current,
        problem.pinned,
        problem.spares,
        problem.quarantined,
        problem.min_consumers,
        consumer_weight=problem.consumer_weight,
    )
    alike = Classes(dict.fromkeys(classes.sizes, size), classes.of)
    found = pack(name, plain, alike)
    assert found.assignment == ALGORITHMS[name](plain, Random(0))
    assert price(found, alike) == len(found.classes)


def least_cost(problem, classes):
    """Of all ways to share out partitions among those that run and as many new ones of any class."""
    known = sorted({*problem.current.values()})
    size_of = {c: classes.sizes[classes.of[c]] for c in known}
    homes = [*known, *range(100, 100 + len(problem.speeds))]
    order, best = sorted(problem.speeds), float("inf")
    for places in product(homes, repeat=len(order)):
        new = [c for c in dict.fromkeys(places) if c >= 100]
        if any(b < a for a, b in pairwise(new)):
            continue  # the same with other numbers
        price = 0.0
        for c in set(places):
            load = sum(problem.speeds[p] for p, at in zip(order, places, strict=True) if at == c)
            fits = [s.price for s in ([size_of[c]] if c in size_of else classes.sizes.values()) if load <= s.capacity]
            price += min(fits, default=float("inf"))
        moved = rscore(problem.current, dict(zip(order, places, strict=True)), problem.speeds, problem.capacity)
        best = min(best, problem.consumer_weight * price / classes.cheapest + moved)
    return best


@settings(LIMITS, max_examples=60)
@given(group=groups(free=False, few=True))
def test_search_is_near_the_least_cost(group):
    problem, classes = group
    assume(max(problem.speeds.values()) <= max(size.capacity for size in classes.sizes.values()))
    found = pack("search", problem, classes)
    moved = rscore(problem.current, found.assignment, problem.speeds, problem.capacity)
    least = least_cost(problem, classes)
    outlook = 2 * max(problem.speeds.values()) / problem.capacity  # it also weighs what is expected to move next
    assert least - EPSILON <= problem.consumer_weight * price(found, classes) + moved <= 1.25 * least + outlook


def test_replaces_a_consumer_by_a_cheaper_one_if_that_is_worth_the_moves():
    only = TopicPartition("t", 0)
    sizes = {"small": Size(100.0, 1.0), "large": Size(220.0, 2.0)}
    of = {ConsumerId(1): "large"}
    cheap, dear = (
        pack("keep", PackingProblem({only: 90.0}, 100.0, {only: ConsumerId(1)}, consumer_weight=w), Classes(sizes, of))
        for w in (1.3, 0.5)
    )
    assert (cheap.assignment, cheap.classes) == ({only: 2}, {2: "small"})
    assert (dear.assignment, dear.classes) == ({only: 1}, {1: "large"})
