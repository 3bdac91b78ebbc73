"""Mode, percentiles and histogram of rates."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.monitor.speeds.rates import mode, spread


def test_the_mode_is_where_rates_are_densest_not_their_mean():
    generator = random.Random(1)
    rates = [generator.gauss(2.3, 0.1) for _ in range(300)] + [generator.uniform(0, 1.5) for _ in range(100)]
    assert mode(np.array(rates)) == pytest.approx(2.3, abs=0.1)
    assert sum(rates) / len(rates) < 2.0


@pytest.mark.parametrize(("rates", "expected"), [([5.0], 5.0), ([7.0] * 9, 7.0), ([1.0, 8.0, 8.1, 8.2], 8.1)])
def test_the_mode_of_a_few(rates, expected):
    assert mode(np.array(rates)) == pytest.approx(expected, rel=0.01)


def test_percentiles_lie_between_neighbours():
    expected = {5: 1.15, 25: 1.75, 50: 2.5, 75: 3.25, 95: 3.85}
    assert spread([1.0, 4.0, 2.0, 3.0]).percentiles == pytest.approx(expected)


def test_rates_that_floats_hardly_tell_apart_are_one_bar():
    assert spread([1.0, math.nextafter(1.0, 2.0)]).bins == ((1.0, math.nextafter(1.0, 2.0), 2),)


def test_nothing_has_no_spread():
    with pytest.raises(ValueError, match="no rates"):
        spread([])


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=60))
def test_every_rate_is_in_one_bar_and_the_mode_among_the_rates(rates):
    found = spread(rates)
    assert sum(count for _, _, count in found.bins) == len(rates)
    assert min(rates) <= found.mode <= max(rates)
    assert sorted(found.percentiles.values()) == list(found.percentiles.values())


def test_bars_stand_side_by_side_and_each_counts_what_lies_in_it():
    found = spread([0.0, 1.0, 2.0, 2.5, 8.0], bins=4)
    assert found.bins == ((0.0, 2.0, 2), (2.0, 4.0, 2), (4.0, 6.0, 0), (6.0, 8.0, 1))
    assert spread([5.0, 5.0]).bins == ((5.0, 5.0, 2),)


def test_of_two_heaps_the_mode_is_one_and_not_the_middle_between_them():
    """Where they stand makes no difference: what counts is how far they are from their mean."""
    for low in (0.0, 1000.0):
        assert abs(mode(np.array([low, low, low + 10, low + 10])) - (low + 5)) > 3
