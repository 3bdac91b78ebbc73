"""Partitions near their leaders: what the pass after a packing may do, by a plain count of what it costs."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.packing import ALGORITHMS, Classes, PackingProblem, Size, Zones, near, rscore
from tests.core.packing.test_properties import CAPACITY, bounded_problems

zone = st.sampled_from("abc")
weights = st.sampled_from([0.0, 0.3, 1.0, 1.5, 8.0])
LETTERS = P, Q, R = [TopicPartition(name, 0) for name in "pqr"]


@st.composite
def zoned_problems(draw):
    plain = draw(bounded_problems())
    leaders = draw(st.dictionaries(st.sampled_from(sorted(plain.speeds)), zone)) if plain.speeds else {}
    consumers = draw(st.dictionaries(st.integers(1, 12).map(ConsumerId), zone, min_size=4))
    return replace(plain, zones=Zones(consumers, leaders, draw(weights)))


def cost(assignment, problem):
    """Rscore and the price of what is read across zones, counted plainly."""
    far, zones = 0.0, problem.zones
    for p, c in assignment.items():
        if p in zones.leaders and c in zones.consumers and zones.leaders[p] != zones.consumers[c]:
            far += problem.speeds[p]
    homes = {p: c for p, c in problem.current.items() if c not in problem.quarantined}
    moved = rscore(homes, assignment, problem.speeds, CAPACITY)
    return moved + zones.weight * far / CAPACITY


def loads(assignment, problem):
    found = dict.fromkeys(assignment.values(), 0.0)
    for p, c in assignment.items():
        found[c] += problem.speeds[p]
    return found


@settings(max_examples=100, deadline=None)
@given(problem=zoned_problems(), larger=st.dictionaries(st.integers(1, 12), st.sampled_from([1.5, 2.0]), max_size=6))
def test_consumers_of_several_classes_are_filled_each_to_its_own_capacity(problem, larger):
    packed = ALGORITHMS["bfd"](problem, Random(0))
    sizes = {str(size): Size(CAPACITY * size, size) for size in (1.0, 1.5, 2.0)}
    found = near(packed, problem, Classes(sizes, {c: str(size) for c, size in larger.items()}))
    before, after = loads(packed, problem), loads(found, problem)
    for consumer, load in after.items():
        alike = [was for c, was in before.items() if larger.get(c, 1.0) == larger.get(consumer, 1.0)]
        own = [CAPACITY * larger.get(consumer, 1.0), before.get(consumer, 0.0)]
        assert load <= max(own + alike) + 1e-6  # a whole share may be handed on
    assert cost(found, problem) <= cost(packed, problem) + 1e-9


@settings(max_examples=150, deadline=None)
@given(problem=zoned_problems(), name=st.sampled_from(["bfd", "keep", "nf"]))
def test_it_costs_less_and_breaks_nothing(problem, name):
    packed = ALGORITHMS[name](problem, Random(0))
    found = near(packed, problem)
    before, after = loads(packed, problem), loads(found, problem)
    assert cost(found, problem) <= cost(packed, problem) + 1e-9
    assert len(before) == len(after)
    assert after.keys() <= before.keys() | {*problem.current.values()} | problem.spares
    assert not (after.keys() - before.keys()) & problem.quarantined
    assert all(load <= max(CAPACITY, *before.values()) + 1e-6 for load in after.values())
    assert all(found[p] == packed[p] for p in problem.pinned)
    assert near(found, problem) == found
    if problem.zones.weight == 0:
        assert found is packed
    for partition in found.keys() - problem.pinned:  # no single move is left that fits and gains
        for consumer in after:
            moved = {**found, partition: consumer}
            fits = after[consumer] + problem.speeds[partition] <= CAPACITY - 1e-6
            is_near = problem.zones.consumers.get(consumer) == problem.zones.leaders.get(partition, "")
            is_last = list(found.values()).count(found[partition]) == 1
            if problem.zones.is_far(partition, found[partition]) and fits and is_near and not is_last:
                assert cost(moved, problem) >= cost(found, problem) - 1e-6


def three(current, weight, speeds=(60, 60, 60)):
    """Partitions led in zones a, b and c; consumers 1, 2, 3 likewise."""
    zones = Zones(dict(zip((1, 2, 3), "abc", strict=True)), dict(zip(LETTERS, "abc", strict=True)), weight)
    return PackingProblem(dict(zip(LETTERS, speeds, strict=True)), CAPACITY, current, zones=zones)


@pytest.mark.parametrize(
    ("weight", "current", "expected"),
    [
        (0.0, {}, (2, 1, 3)),  # not asked for
        (0.1, {}, (1, 2, 3)),  # what has no consumer goes near
        (1.0, {P: 2, Q: 1, R: 3}, (2, 1, 3)),  # what is read stays
        (1.1, {P: 2, Q: 1, R: 3}, (1, 2, 3)),  # worth a move
        (1.1, {P: 3, Q: 1, R: 3}, (1, 2, 3)),
        (0.1, {P: 2, R: 3}, (2, 1, 3)),  # P would have to leave
    ],
)
def test_what_a_weight_is_worth(weight, current, expected):
    packed = {P: 2, Q: 1, R: 3}
    assert tuple(near(packed, three(current, weight)).values()) == expected


@pytest.mark.parametrize(("spares", "expected"), [({}, (2, 2, 3)), ({7}, (7, 7, 3)), ({8}, (2, 2, 3))])
def test_a_whole_share_goes_to_an_idle_consumer_of_its_zone(spares, expected):
    zones = Zones({2: "b", 3: "c", 7: "a", 8: "b"}, {P: "a", Q: "a", R: "c"}, 0.5)
    problem = PackingProblem({P: 20, Q: 20, R: 90}, CAPACITY, {}, spares=frozenset(spares), zones=zones)
    assert tuple(near({P: 2, Q: 2, R: 3}, problem).values()) == expected


def test_unknown_zones_cost_nothing():
    packed, problem = {P: 2, Q: 1, R: 3}, three({}, 5.0)
    for zones in (replace(problem.zones, leaders={}), replace(problem.zones, consumers={1: "a"})):
        assert near(packed, replace(problem, zones=zones)) == packed
    assert Zones().far(packed, problem.speeds) is None
    assert problem.zones.far(packed, problem.speeds) == 120
    assert replace(problem.zones, leaders={P: "b"}).far(packed, problem.speeds) == 0
