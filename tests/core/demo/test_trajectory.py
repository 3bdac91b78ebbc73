import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.demo.trajectory import cruise_altitude_ft, distance_nm, great_circle_point, profile

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


def test_longer_legs_cruise_higher_within_limits():
    assert cruise_altitude_ft(np.array([1.0, 160.0, 400.0, 2200.0])).tolist() == [10_000, 18_000, 30_000, 39_000]


def test_phases_and_altitudes_of_a_long_flight():
    elapsed_s = np.array([0, 585, 1170, 9000, 16440, 17220, 18000], dtype=float)
    flown = profile(elapsed_s, *at(18_000, 0, 39_000, 0))
    assert flown.phase.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert flown.altitude_ft == pytest.approx([0, 19_500, 39_000, 39_000, 39_000, 19_500, 0])


@given(st.integers(20, 700), st.sampled_from([10_000.0, 24_000.0, 39_000.0]), st.floats(0, 6000), st.floats(0, 6000))
def test_a_flight_climbs_cruises_and_descends_in_that_order(air_min, cruise_ft, origin_ft, dest_ft):
    air_s = air_min * 60.0
    elapsed_s = np.linspace(0, air_s, 200)
    flown = profile(elapsed_s, *at(air_s, origin_ft, cruise_ft, dest_ft))
    assert set(flown.phase.tolist()) == {0, 1, 2}
    assert (np.diff(flown.phase) >= 0).all()
    assert flown.altitude_ft[[0, -1]] == pytest.approx([origin_ft, dest_ft])
    assert flown.altitude_ft.max() == cruise_ft
