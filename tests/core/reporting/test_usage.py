"""How long consumers ran, by their reports: what was not heard is neither running nor not running."""

import pytest

from kgs_core.group.protocol import Heartbeat, Incarnation, Member, Phase, Received, Report
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.reporting.usage import Period, UsageCount, overlap_s, running_at
from tests.processes import a_process

A = TopicPartition("t", 0)
DAY = Period(0, 100_000)
SUSPECT_S = 10.0


def sign(consumer, at_s, sequence, *owned, phase=Phase.READING, full=True, life=None, of=""):
    member = Member(ConsumerId(consumer), Incarnation(life or f"life-{consumer}"))
    if full:
        said = Report(member, sequence, phase, 0.0, None, a_process(), None, frozenset(owned), consumer_class=of)
    else:
        said = Heartbeat(member, sequence, phase, 0.0, None)
    return Received(said, sequence, round(at_s * 1000))


def usage(*signs, period=DAY, since=0):
    count = UsageCount(SUSPECT_S)
    count.take(signs)
    return count.usage(period, since)


ENDED = Phase.ENDED


@pytest.mark.parametrize(
    ("signs", "lives", "silences"),
    [
        ([sign(1, 10, 1), sign(1, 18, 2, full=False), sign(1, 25, 3, phase=ENDED)], [(10, 25)], []),
        ([sign(1, 95, 1)], [(95, 100)], []),
        ([sign(1, 10, 1), sign(1, 40, 2), sign(1, 45, 3, phase=ENDED)], [(40, 45)], [(10, 40)]),
        ([sign(1, 10, 1), sign(1, 18, 2, full=False)], [(10, 18)], [(18, 48)]),
        ([sign(1, 1, 1), sign(1, 5, 2, phase=ENDED), sign(1, 9, 2)], [(1, 5)], []),
        ([sign(1, 10, 1), sign(1, 20, 2), sign(1, 15, 3), sign(1, 24, 4, phase=ENDED)], [(10, 24)], []),
    ],
    ids=[
        "from the first sign to the last word",
        "who was heard of late runs on to the end of the period",
        "a silence is no time that was used and no time that was not",
        "the dead may have run until they would have ended themselves",
        "a late word of one that has ended brings nobody back",
        "a clock that goes back takes nothing away",
    ],
)
def test_lives_and_silences(signs, lives, silences):
    found = usage(*signs)
    for periods, expected in ((found.lives, lives), (found.silences, silences)):
        assert periods == tuple(Period(since * 1000, until * 1000) for since, until in expected)


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


def test_hours_are_counted_by_class_where_a_consumer_has_one():
    signs = [sign(1, 10, 1, of="large"), sign(1, 18, 2, full=False), sign(1, 60, 3, phase=ENDED, of="large")]
    signs += [sign(2, 50, 1), sign(2, 55, 2, phase=ENDED)]
    found = usage(*signs)
    assert {name: [life[0] // 1000 for life in lives] for name, lives in found.by_class.items()} == {
        "": [50], "large": [10]
    }  # fmt: skip
    assert sorted(life for lives in found.by_class.values() for life in lives) == list(found.lives)
    assert usage(*signs[3:]).by_class == {}
