"""Whose turn it is: one after the other, nobody for ever, the last maker first."""

from random import Random

import pytest

from kgs_core.lake.delta.turns import PATIENCE, Turns


@pytest.fixture
def turns():
    return Turns(Random(1))


@pytest.mark.parametrize(("batches", "waits_s"), [(1, 0.0), (51, 0.4)])
def test_last_maker_goes_ahead_at_once_or_waits_for_as_many_as_were_there(turns, batches, waits_s):
    turns.made(5, batches, 10.0)
    turns.ended()
    turns.begin(10.0)
    assert not waits_s or not turns.is_due(10.1)
    assert turns.is_due(10.0 + waits_s)
    assert turns.is_first(7, 10.0 + waits_s)


def test_others_wait_and_go_ahead_in_the_end(turns):
    turns.saw(5, 2, 10.0, is_mine=False)
    turns.begin(10.0)
    assert not turns.is_due(10.1)
    assert turns.is_due(12.0)
    assert not turns.is_first(3, 12.0)
    assert not turns.is_due(12.0)
    assert turns.is_due(13.0)
    assert turns.is_first(3, 13.0)


def test_entries_of_many_postpone_a_turn_but_not_for_ever(turns):
    turns.saw(5, 2, 10.0, is_mine=False)
    turns.begin(10.0)
    for n in range(PATIENCE):
        turns.saw(6 + n, 9, 11.0 + n, is_mine=False)
        assert not turns.is_due(11.0 + n)
    turns.saw(6 + PATIENCE, 9, 30.0, is_mine=False)
    assert turns.is_due(30.0)


def test_entries_of_one_postpone_nothing(turns):
    turns.saw(5, 1, 10.0, is_mine=False)
    turns.begin(10.0)
    turns.saw(6, 1, 12.0, is_mine=False)
    assert turns.is_due(12.0)


def test_alone_after_many_commits_without_others(turns):
    for n in range(30):
        assert n < 10 or turns.is_alone or n < 20
        turns.begin(float(n))
        turns.made(n, 1, float(n))
        turns.ended()
    assert turns.is_alone
    for n in range(30, 40):  # what came while there was nothing to commit was in nobody's way
        turns.saw(n, 1, float(n), is_mine=False)
        turns.begin(float(n))
        turns.ended()
    assert turns.is_alone
    for n in range(40, 50):
        turns.begin(float(n))
        turns.saw(n, 1, float(n), is_mine=False)
        turns.ended()
    assert not turns.is_alone


def test_idle_time_is_no_interval_and_no_wait_is_long(turns):
    for n in range(20):
        turns.saw(n, 1, 100.0 * n, is_mine=False)
        turns.begin(100.0 * n)
        turns.ended()
    turns.begin(2000.0)
    assert turns.is_due(2001.0)
    for n in range(20, 60):  # entry after entry of many, never with this batch
        turns.saw(n, 50, 2000.0 + 0.5 * (n - 19), is_mine=False)
    turns.is_first(99, 2007.0)
    assert turns.is_due(2008.0)


def test_pause_is_short_and_never_none(turns):
    turns.saw(5, 1, 10.0, is_mine=False)
    turns.begin(10.0)
    assert 0 < turns.pause_s(10.0) <= 0.5
    assert 0 < turns.pause_s(99.0) <= 0.5
