import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.demo.trajectory import distance_nm, great_circle_point

JFK = (40.639751, -73.778925)
LAX = (33.942536, -118.408075)


def at(*numbers):
    return tuple(np.array([number], dtype=float) for number in numbers)


def test_published_example_from_lands_end_to_john_o_groats():
    start, end = (
        (50 + 3 / 60 + 59 / 3600, -(5 + 42 / 60 + 53 / 3600)),
        (58 + 38 / 60 + 38 / 3600, -(3 + 4 / 60 + 12 / 3600)),
    )
    lat, lon = great_circle_point(*at(*start), *at(*end), np.array([0.5]))
    assert lat[0] == pytest.approx(54 + 21 / 60 + 44 / 3600, abs=1 / 3600)
    assert lon[0] == pytest.approx(-(4 + 31 / 60 + 50 / 3600), abs=1 / 3600)
    assert distance_nm(*at(*start), *at(*end))[0] * 1.852 == pytest.approx(968.9, abs=0.1)


@given(st.floats(0, 1))
def test_distances_to_both_ends_add_up_to_the_leg(fraction):
    lat, lon = great_circle_point(*at(*JFK), *at(*LAX), np.array([fraction]))
    leg = distance_nm(*at(*JFK), *at(*LAX))[0]
    assert distance_nm(*at(*JFK), lat, lon)[0] == pytest.approx(fraction * leg, abs=1e-3)
    assert distance_nm(lat, lon, *at(*LAX))[0] == pytest.approx((1 - fraction) * leg, abs=1e-3)
