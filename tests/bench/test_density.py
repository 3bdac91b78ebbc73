"""Density of rates."""

from itertools import pairwise
from operator import itemgetter

import numpy as np
import pytest

from bench.density import density
from kgs_core.monitor.speeds.rates import mode


def test_density_of_rates_is_highest_at_their_mode_and_its_area_is_one():
    rates = [1.0, 2.0, 2.1, 2.2, 2.2, 2.3, 4.0]
    points = density(rates)
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))
    assert area == pytest.approx(1.0, abs=0.02)
    assert max(points, key=itemgetter(1))[0] == pytest.approx(mode(np.asarray(rates)), abs=0.05)


def test_rates_that_are_all_one_have_no_density():
    assert density([3.0, 3.0, 3.0]) == []
