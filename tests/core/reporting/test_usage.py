"""How long consumers ran, by their reports: what was not heard is neither running nor not running."""

import pytest

from kgs_core.group.protocol import Heartbeat, Incarnation, Member, Phase, Received, Report
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.reporting.usage import Period, UsageCount, overlap_s, running_at
from tests.processes import a_process

A = TopicPartition("t", 0)
DAY = Period(0, 100_000)
SUSPECT_S = 10.0


def sign(consumer, at_s, sequence, *owned, phase=Phase.READING, full=True, life=None):
    member = Member(ConsumerId(consumer), Incarnation(life or f"life-{consumer}"))
    if full:
        said = Report(member, sequence, phase, 0.0, None, a_process(), None, frozenset(owned))
    else:
        said = Heartbeat(member, sequence, phase, 0.0, None)
    return Received(said, sequence, round(at_s * 1000))


def usage(*signs, period=DAY, since=0):
    count = UsageCount(SUSPECT_S)
    count.take(signs)
    return count.usage(period, since)


def test_a_life_lasts_from_the_first_sign_to_the_last_word():
    found = usage(sign(1, 10, 1), sign(1, 18, 2, full=False), sign(1, 25, 3, phase=Phase.ENDED))
    assert found.lives == (Period(10_000, 25_000),)
    assert found.silences == ()


def test_who_was_heard_of_late_runs_on_to_the_end_of_the_period():
    assert usage(sign(1, 95, 1)).lives == (Period(95_000, 100_000),)


def test_a_silence_is_no_time_that_was_used_and_no_time_that_was_not():
    found = usage(sign(1, 10, 1), sign(1, 40, 2), sign(1, 45, 3, phase=Phase.ENDED))
    assert found.lives == (Period(40_000, 45_000),)
    assert found.silences == (Period(10_000, 40_000),)


def test_the_dead_may_have_run_until_they_would_have_ended_themselves():
    found = usage(sign(1, 10, 1), sign(1, 18, 2, full=False))
    assert found.lives == (Period(10_000, 18_000),)
    assert found.silences == (Period(18_000, 48_000),)


def test_a_late_word_of_one_that_has_ended_brings_nobody_back():
    found = usage(sign(1, 1, 1), sign(1, 5, 2, phase=Phase.ENDED), sign(1, 9, 2))
    assert found.lives == (Period(1_000, 5_000),)


def test_a_clock_that_goes_back_takes_nothing_away():
    found = usage(sign(1, 10, 1), sign(1, 20, 2), sign(1, 15, 3), sign(1, 24, 4, phase=Phase.ENDED))
    assert found.lives == (Period(10_000, 24_000),)


def test_lives_are_cut_at_the_period_and_handovers_before_it_are_not_its_own():
    signs = (sign(1, 1, 1, A), sign(1, 2, 2), sign(2, 3, 1, A), sign(2, 12, 2, A), sign(2, 20, 3), sign(1, 23, 3, A))
    found = usage(*signs, period=Period(10_000, 30_000))
    assert all(10_000 <= life.since_ms <= life.until_ms <= 30_000 for life in found.lives)
    (handover,) = found.handovers
    assert (handover.before, handover.after, handover.gap_s, handover.taken_ms) == (2, 1, 3.0, 23_000)


def test_a_partition_whose_consumer_began_anew_has_not_moved():
    found = usage(sign(1, 1, 1, A), sign(1, 2, 2, phase=Phase.ENDED), sign(1, 8, 1, A, life="second"))
    (handover,) = found.handovers
    assert (handover.before, handover.after, handover.gap_s) == (1, 1, 6.0)


def test_overlaps_are_added_up():
    lives = (Period(0, 10_000), Period(5_000, 20_000))
    assert overlap_s(lives, [Period(8_000, 12_000), Period(15_000, 30_000)]) == pytest.approx(2 + 4 + 5)
    assert [running_at(lives, ms) for ms in (0, 7_000, 10_000, 20_000)] == [1, 2, 1, 0]
