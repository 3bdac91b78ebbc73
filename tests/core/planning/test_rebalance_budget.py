"""How much may be moved in an hour: what counts, what is remembered, and what must wait."""

from dataclasses import replace
from itertools import accumulate
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.group.protocol import Change
from kgs_core.planning.load import Load
from kgs_core.planning.rebalance_budget import (
    HOUR_MS,
    MAX_COUNTED,
    MAX_HISTORY,
    HeldBack,
    moved_within_an_hour,
    over_budget,
    with_change,
)
from kgs_core.planning.triggers import ExitCondition, Reason, RunDecision, Watched, decide
from tests.core.group.controller.two_readers import A, B
from tests.sim_group import packing_of

prices = st.one_of(st.just(0.0), st.floats(0.001, 5))
steps = st.lists(st.tuples(st.integers(0, 900_000), prices), min_size=1, max_size=300)


def change(time_ms, rscore):
    return Change(time_ms, "", int(rscore > 0), rscore, 1)


@given(st.floats(0, 10), st.floats(0, 10), st.none() | st.floats(0, 10))
def test_a_change_waits_only_if_it_moves_something_and_goes_beyond(rscore, moved, most):
    held = over_budget(rscore, moved, most)
    assert (held is not None) == (most is not None and rscore > 0 and rscore + moved > most + 1e-9)
    if held:
        assert str(held).startswith("held back: ")


@pytest.mark.parametrize(
    ("held", "text"),
    [
        (HeldBack(0.5, 0.7, 1.0), "held back: 1.2 of at most 1.0 Rscore an hour (0.7 moved, 0.5 to move)"),
        (HeldBack(0.125, 0, 0), "held back: 0.125 of at most 0.0 Rscore an hour (0.0 moved, 0.125 to move)"),
    ],
)
def test_in_words(held, text):
    assert str(held) == text


@given(steps)
def test_nothing_that_was_moved_within_the_hour_is_forgotten(given_steps):
    """Whatever is left out of the record or summed up in it: the last hour counts in full, and what is older little."""
    history, whole = (), []
    times = accumulate(pause for pause, _ in given_steps)
    for time_ms, (_, rscore) in zip(times, given_steps, strict=True):
        one = change(time_ms, rscore)
        history, whole = with_change(history, one), [*whole, one]
        counted, exact = moved_within_an_hour(history, time_ms), moved_within_an_hour(whole, time_ms)
        assert counted >= exact - 1e-6
        assert len(history) <= MAX_COUNTED
        assert history[-MAX_HISTORY:] == tuple(whole[-MAX_HISTORY:])
        if len(whole) <= MAX_COUNTED:
            assert counted == pytest.approx(exact)
    assert moved_within_an_hour(history, history[-1].time_ms + HOUR_MS) == 0


@given(st.lists(st.floats(0.001, 5), min_size=150, max_size=150))
def test_very_many_changes_are_summed_up(rscores):
    history = ()
    for number, rscore in enumerate(rscores):
        history = with_change(history, change(1000 * number, rscore))
    assert len(history) == MAX_COUNTED
    assert (history[0].time_ms, history[0].moved) == (50_000, 51), "the earliest 51, under the time of the last of them"
    assert [one.time_ms for one in history[1:]] == [1000 * number for number in range(51, 150)]
    assert moved_within_an_hour(history, 150_000) == pytest.approx(sum(rscores))


def test_the_hour_ends_to_the_millisecond():
    history = (change(1_000, 0.5), change(2_000, 0.25))
    assert moved_within_an_hour(history, HOUR_MS + 999) == 0.75
    assert moved_within_an_hour(history, HOUR_MS + 1_000) == 0.25
    assert moved_within_an_hour(history, 0) == 0.75, "put in the future by a wrong clock"


class TestSentinel:
    @pytest.fixture
    def waited(self, assigned):
        shares = assigned({1: "ab", 2: "c"})
        return Watched(target=shares, current=shares, joined=frozenset({1, 2}), since_packing_s=300.0)

    @pytest.fixture
    def quiet(self, speeds_of):
        return Load(speeds_of(a=30, b=30, c=30))

    @pytest.mark.parametrize(("most", "moved", "is_made"), [
        (None, 9.0, True), (0.3, 0.0, True), (0.29, 0.0, False), (1.0, 0.7, True), (1.0, 0.71, False),
    ])  # fmt: skip
    def test_a_better_packing_keeps_to_the_budget(self, quiet, waited, packing, most, moved, is_made):
        """One consumer less, for 0.3 of a consumer's capacity."""
        settings = packing(max_rscore_per_hour=most)
        found = decide(quiet, replace(waited, moved_rscore=moved), settings, lambda: Random(0))
        if is_made:
            assert found.plan is not None
        else:
            assert found == RunDecision((ExitCondition(Reason.TIMEOUT),), held_back=HeldBack(0.3, moved, most))

    @given(st.floats(0, 5), st.floats(0, 5))
    def test_what_is_forced_is_done_whatever_was_moved(self, most, moved):
        shares = {A: 1, B: 1}
        grown = Load({A: 80.0, B: 60.0})
        watched = Watched(shares, shares, frozenset({1}), since_packing_s=300.0, moved_rscore=moved)
        found = decide(grown, watched, packing_of(max_rscore_per_hour=most), lambda: Random(0))
        assert found.plan is not None
        assert found.plan.rscore > 0

    def test_who_is_not_worth_it_is_not_held_back(self, quiet, waited, packing):
        settings = packing(consumer_weight=0.2, max_rscore_per_hour=0.1)
        found = decide(quiet, waited, settings, lambda: Random(0))
        assert found == RunDecision((ExitCondition(Reason.TIMEOUT),))
