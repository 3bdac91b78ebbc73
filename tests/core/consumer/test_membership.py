"""What a member owns, reports and when it ends."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.consumer.member import Decision, Ending, Facts, Identity
from kgs_core.consumer.membership import FULL_EVERY_S, Membership
from kgs_core.model import ConsumerId
from kgs_core.protocol import Heartbeat, Member, Phase, Report
from tests.core.consumer.membership_words import (
    ME,
    OTHER,
    PACE,
    PROCESS,
    A,
    B,
    C,
    act,
    member,
    order,
    reading,
    retire,
    said,
)

# Orders


def test_owns_nothing_until_it_is_assigned():
    assert member().decision == Decision()
    _, first = said(member(), 0)
    assert first == Report(
        ME, 1, Phase.READING, 0.0, None, PROCESS, None, frozenset(), version="1.0", config_hash="abc"
    )


def test_newest_order_counts_by_its_offset():
    orders = [order(7, A), order(9, B, coming={B, C}), order(8, C)]
    assert member().received(orders, 0).decision == Decision(frozenset({B}), frozenset({C}), 9)


def test_orders_of_others_are_not_applied():
    foreign = order(7, A, to=Member(ConsumerId(4), ME.incarnation))
    older = order(8, A, to=OTHER)
    membership = member().received([foreign, older], 0)
    assert membership.decision == Decision()
    assert membership.ending is None


def test_order_seen_twice_changes_nothing():
    once = member().received([order(7, A)], 0)
    assert once.received([order(7, A), order(6, B)], 5) == once


def test_retire_is_for_good():
    membership = reading(A).received([retire(6)], 1).received([order(7, A, B)], 2)
    assert membership.ending is Ending.RETIRED
    assert membership.decision == Decision(offset=7, ends=True)


# Which incarnation is newer


def test_gift_to_another_incarnation_behind_an_order_of_ours_ends_us():
    for gift in (order(9, B, to=OTHER), order(9, to=OTHER, coming={B})):
        membership = reading(A).received([gift], 1)
        assert membership.ending is Ending.SUPERSEDED
        assert membership.owned == {A}, "held until the batch in hand is done"
        assert membership.decision == Decision(offset=5, ends=True)


def test_gift_to_another_incarnation_before_any_order_of_ours_does_not():
    """It may have been written before the controller knew of us: the other one may be the older."""
    membership = member().received([order(4, A, to=OTHER)], 0)
    assert membership.ending is None
    membership = membership.received([order(5, to=OTHER, revoking={A}), order(6, B)], 0)
    assert membership.decision.owned == {B}


def test_orders_that_empty_or_retire_an_older_incarnation_do_not_end_us():
    membership = reading(A).received([order(6, to=OTHER, revoking={B}), order(7, to=OTHER), retire(8, OTHER)], 0)
    assert membership.ending is None


def test_of_two_twins_the_one_that_the_controller_holds_for_older_ends():
    """Both read the same queue; the controller hears of one first, gives to it, then hears of the other one."""
    queue = [order(1, A, to=ME), order(2, to=ME, revoking={A}), order(3, to=OTHER, coming={A}), order(4, A, to=OTHER)]
    older = member().received(queue, 0)
    newer = Membership.join(Identity(OTHER, PROCESS), PACE, 0.0).received(queue, 0)
    assert (older.ending, newer.ending) == (Ending.SUPERSEDED, None)
    assert newer.decision.owned == {A}


@given(st.integers(0, 8), st.integers(0, 8), st.lists(st.tuples(st.booleans(), st.booleans()), min_size=9, max_size=16))
def test_never_do_both_twins_end(learned, joined, steps):
    """A controller that follows rule 5: before it knows of the newer one it gives to the older, then never again."""
    queue = []
    for offset, (to_newer, gives) in enumerate(steps):
        knows_both = offset >= learned
        to = OTHER if to_newer and knows_both else ME
        gives_now = gives and (to == OTHER or not knows_both)
        queue.append(order(offset, *([A] if gives_now else []), to=to))
    newer = Membership.join(Identity(OTHER, PROCESS), PACE, 0.0)
    assert newer.received(queue[min(joined, learned) :], 0).ending is None


# Letting go and taking up


def test_lost_partition_stays_reported_until_the_batch_in_hand_is_over():
    membership = reading(A, B).began(10).received([order(6, B, C, revoking={A})], 10)
    membership, during = membership.next_message(12)
    assert isinstance(during, Heartbeat), "nothing has been acted on yet"
    membership = membership.appended(during, 12).rested()
    membership, report = said(act(membership, 13), 13)
    assert (report.applied, report.owned) == (6, {B, C})


def test_gained_partition_is_reported_from_the_moment_it_may_be_read():
    membership = act(reading(A).received([order(6, A, B)], 1), 1)
    assert membership.next_message(1)[1].owned == {A, B}


def test_same_sets_ordered_again_are_acknowledged():
    """Revoke and re-assign to the same consumer is a new Assignment; the controller waits for its offset."""
    membership, report = said(act(reading(A).received([order(6), order(7, A)], 1), 1), 1)
    assert (report.applied, report.owned) == (7, {A})
    assert membership.is_acted_on


def test_drain_is_timed_from_the_order_to_the_report_without_the_partition():
    membership = act(reading(A, B).received([order(6, B, revoking={A})], 10), 13)
    membership, report = said(membership, 13)
    assert (report.drains, report.last_drain_s, report.max_drain_s) == (1, 3, 3)
    membership = act(membership.received([order(7, revoking={B})], 20).received([order(8)], 20.5), 21)
    _, report = said(membership, 21)
    assert (report.drains, report.last_drain_s, report.max_drain_s) == (2, 1, 3)


def test_partition_given_back_before_it_was_let_go_is_no_drain():
    membership = act(reading(A).received([order(6, revoking={A}), order(7, A)], 1), 2)
    assert membership.drains.count == 0
    assert act(membership.received([order(8)], 5), 6).drains.last_s == 1


def test_drain_of_an_order_that_came_while_an_earlier_one_was_acted_on():
    membership = reading(A)
    decision = membership.received([order(6, A, B)], 1).decision
    late = membership.received([order(6, A, B), order(7, A)], 1.5).acted(decision, 2)
    assert act(late, 4).drains.last_s == 2


# Ending


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lambda m: m.asked_to_end(), Ending.ASKED),
        (lambda m: m.received([retire(6)], 1), Ending.RETIRED),
        (lambda m: m.received([order(6, A, to=OTHER)], 1), Ending.SUPERSEDED),
    ],
)
def test_end_drains_says_so_and_is_over_with_the_last_word(end, why):
    membership, draining = said(end(reading(A).began(1)), 1)
    assert membership.ending is why
    assert (draining.phase, draining.owned) == (Phase.DRAINING, {A})
    membership, last = said(act(membership.rested(), 2), 2)
    assert (last.phase, last.owned) == (Phase.ENDED, frozenset())
    assert membership.is_over
    assert membership.next_message(100) == (membership, None)


def test_end_of_the_loop_counts_as_end_whether_asked_for_or_not():
    membership, last = said(reading(A).end(3), 3)
    assert (last.phase, last.owned) == (Phase.ENDED, frozenset())
    assert membership.end(4) == membership


# Reports


def test_heartbeats_between_and_all_of_it_now_and_then():
    membership = reading(A)
    assert membership.next_message(1.9)[1] is None
    assert membership.due_in(1.5) == 0.5
    kinds = []
    now = 0.0
    while now < FULL_EVERY_S:
        now += 2
        membership, message = said(membership, now)
        kinds.append(type(message))
    assert kinds == [Heartbeat] * 29 + [Report]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: act(m.received([order(6, A)], 0)),
        lambda m: m.noted(Facts(stopped={A: "poison"})),
        lambda m: m.asked_to_end(),
    ],
    ids=["order applied", "stopped", "phase"],
)
def test_every_change_is_reported_at_once_and_in_full(change):
    _, message = change(reading(A)).next_message(0.1)
    assert isinstance(message, Report)


def test_facts_are_told_of_owned_partitions_only():
    facts = Facts({A: "poison", C: "old"}, {A: 7, B: 8, C: 9}, 1e6)
    _, report = said(reading(A, B).noted(facts), 1)
    assert (report.stopped, report.positions, report.bytes_per_s) == ({A: "poison"}, {A: 7, B: 8}, 1e6)


def test_position_that_moves_is_no_change_and_a_new_one_is():
    membership, report = said(reading(A, B).noted(Facts(positions={A: 7})), 1)
    assert report.positions == {A: 7}
    assert membership.noted(Facts(positions={A: 8})).next_message(1)[1] is None
    assert membership.noted(Facts(positions={A: 8, B: 0})).next_message(1)[1].positions == {A: 8, B: 0}


def test_sequence_rises_with_every_message_also_with_one_that_failed():
    membership, first = member().next_message(0)
    membership, second = membership.next_message(1)
    membership, third = said(membership.appended(second, 1), 3)
    assert [first.sequence, second.sequence, third.sequence] == [1, 2, 3]


def test_heartbeat_never_confirms_a_report_of_unknown_fate():
    """The set goes and comes back; the report between may be in the log, so it must be said again in full."""
    membership, lost = act(reading(A).received([order(6)], 1), 1).next_message(1)
    assert lost.owned == frozenset()
    membership = act(membership.received([order(7, A)], 2), 2)
    membership = replace(membership, applied=5)  # as it was when the last known report was appended
    _, message = membership.next_message(2)
    assert isinstance(message, Report)


def test_batch_age_is_that_of_the_round_in_hand():
    membership = reading(A).began(10)
    assert membership.next_message(14)[1].batch_age_s == 4
    assert membership.rested().next_message(14)[1].batch_age_s is None
    assert reading().began(10).next_message(14)[1].batch_age_s is None, "who owns nothing has no batch"


# Self-fence


def test_ends_at_once_when_it_cannot_be_heard():
    membership = reading(A, now=10)
    assert membership.fence_reason(100) is None
    assert "no report could be appended for 90 s" in membership.fence_reason(100.1)
    membership, _ = said(membership, 100)
    assert membership.fence_reason(150) is None


def test_ends_at_once_when_a_batch_is_too_old():
    membership = reading(A).began(1)
    for now in range(2, 302, 2):
        membership, _ = said(membership, now)
    assert membership.fence_reason(301) is None
    assert "batch older than batch_timeout_s=300" in membership.fence_reason(301.1)
    assert membership.rested().fence_reason(301.1) is None


def test_silence_of_the_controller_is_no_reason_to_end():
    membership = reading(A)
    for now in range(2, 100_000, 50):
        membership, _ = said(membership, now)
        assert membership.fence_reason(now) is None
    assert membership.decision.owned == {A}


def test_who_holds_nothing_any_more_is_left_alone():
    assert reading(A).asked_to_end().fence_reason(1e6)
    assert reading(A).end(1).fence_reason(1e6) is None
