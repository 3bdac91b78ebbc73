"""Whom sticky eviction frees: examples that can be checked by hand."""

import pytest

from kgs_core.packing import PackingProblem
from kgs_core.packing.any_fit.sticky_eviction import sticky_eviction


@pytest.mark.parametrize(
    ("changes", "bins"),
    [
        ({}, {1: "abcd"}),
        ({"consumer_weight": 0.39}, {1: "abd", 2: "c"}),
        ({"consumer_weight": 0.4}, {1: "abcd"}),
        ({"consumer_weight": 0.09}, {1: "ab", 2: "c", 3: "d"}),
        ({"min_consumers": 2}, {1: "abd", 2: "c"}),
        ({"min_consumers": 3}, {1: "ab", 2: "c", 3: "d"}),
    ],
)
def test_consumers_are_freed_from_the_least_loaded_on(speeds_of, assigned, in_order, bins_of, changes, bins):
    """1 has 50, 2 has 40, 3 has 10, of 100: as far as one is not worth more, and as many are left as are asked for."""
    problem = PackingProblem(speeds_of(a=30, b=20, c=40, d=10), 100, assigned({1: "ab", 2: "c", 3: "d"}), **changes)
    assert bins_of(sticky_eviction(problem, in_order)) == bins


def test_one_that_cannot_be_freed_is_the_last_that_is_looked_at(speeds_of, assigned, in_order):
    """2 has 40, which fits nowhere; of 3, the next one, 31 would fit on 4 and 30 on 1."""
    current = assigned({1: "a", 2: "c", 3: "de", 4: "b"})
    problem = PackingProblem(speeds_of(a=70, b=68, c=40, d=31, e=30), 100, current)
    assert sticky_eviction(problem, in_order) == current
