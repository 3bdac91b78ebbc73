"""How long partitions are without a reader: from the report without them to the report with them."""

import pytest

from kgs_core.group.protocol import Heartbeat, Incarnation, Member, MemberAssignment, Phase, Received, Report
from kgs_core.group.view.handover_gaps import Unread
from kgs_core.model import ConsumerId, TopicPartition
from tests.processes import a_process

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
ONE, TWO = (Member(ConsumerId(n), Incarnation(f"life-{n}")) for n in (1, 2))


def report(member, at_s, sequence, *owned, phase=Phase.READING):
    process = a_process()
    return Received(Report(member, sequence, phase, 0.0, None, process, None, frozenset(owned)), 0, round(at_s * 1000))


def heartbeat(member, at_s, sequence):
    return Received(Heartbeat(member, sequence, Phase.READING, 0.0, None), 0, round(at_s * 1000))


@pytest.fixture
def unread():
    return Unread()


def test_a_hand_over_counts_from_letting_go_to_taking(unread):
    unread.take([report(ONE, 0, 1, A, B), report(ONE, 1.5, 2, B)])
    assert unread.unowned == {A}
    unread.take([report(TWO, 3.25, 1, A)])
    assert unread.gaps_s == {A: 1.75}
    assert unread.unowned == frozenset()


def test_back_and_forth_adds_up_and_a_first_owner_costs_nothing(unread):
    unread.take(
        [report(ONE, 0, 1, A), report(ONE, 1, 2), report(TWO, 2, 1, A), report(TWO, 5, 2), report(ONE, 7, 3, A)]
    )
    assert unread.gaps_s == {A: 3.0}


def test_the_dead_count_from_when_they_were_heard_last(unread):
    unread.take([report(ONE, 0, 1, A), heartbeat(ONE, 4, 2), report(TWO, 30, 1, A)])
    assert unread.gaps_s == {A: 26.0}


def test_an_end_in_order_lets_everything_go(unread):
    unread.take([report(ONE, 0, 1, A), report(ONE, 2, 2, A, phase=Phase.ENDED), report(TWO, 3, 1, A)])
    assert unread.gaps_s == {A: 1.0}


def test_who_lost_it_as_a_suspect_and_lets_go_later_frees_nothing(unread):
    unread.take([report(ONE, 0, 1, A), report(TWO, 30, 1, A), report(ONE, 40, 2)])
    assert unread.unowned == frozenset()


def test_what_is_reported_twice_counts_once(unread):
    told = [report(ONE, 0, 1, A), report(ONE, 1, 2), report(TWO, 2, 1, A)]
    unread.take(told)
    unread.take(told)
    assert unread.gaps_s == {A: 1.0}


def test_what_was_before_can_be_left_out(unread):
    unread.take([report(ONE, 0, 1, A, B), report(ONE, 1, 2, B), report(TWO, 2, 1, A)])
    unread.forget_gaps()
    unread.take([report(ONE, 3, 3), report(TWO, 4, 2, A, B)])
    assert unread.gaps_s == {B: 1.0}


def test_other_messages_say_nothing_of_it(unread):
    unread.take([Received(MemberAssignment(ONE, frozenset({A})), 0, 0)])
    assert (unread.gaps_s, unread.unowned) == ({}, frozenset())


def test_the_last_to_find_an_owner_tells_when_all_have(unread):
    assert unread.taken_ms is None
    unread.take([report(ONE, 0, 1, A, B), report(ONE, 1, 2, B), report(TWO, 2.5, 1, A), report(TWO, 9, 2, A)])
    assert unread.taken_ms == 2500
    unread.forget_gaps()
    assert unread.taken_ms is None
