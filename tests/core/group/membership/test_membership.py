"""What a member owns, reports and when it ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.group.membership.member import Decision, Identity
from kgs_core.group.membership.membership import Membership
from kgs_core.group.protocol import Ending, Heartbeat, Member, Phase, Report
from kgs_core.model import ConsumerId
from tests.core.group.membership.membership_words import (
    ME,
    OTHER,
    PACE,
    PROCESS,
    A,
    B,
    C,
    act,
    gives,
    member,
    reading,
    retire,
    said,
)

# Assignments


def test_owns_nothing_until_it_is_assigned():
    assert member().decision == Decision()
    _, first = said(member(), 0)
    assert first == Report(
        ME, 1, Phase.READING, 0.0, None, PROCESS, None, frozenset(), version="1.0", config_hash="abc", ready=frozenset()
    )


def test_newest_assignment_counts_by_its_offset():
    assignments = [gives(7, A), gives(9, B, pending={B, C}), gives(8, C)]
    assert member().received(assignments, 0).decision == Decision(frozenset({B}), frozenset({C}), 9)


def test_assignments_of_others_are_not_applied():
    foreign = gives(7, A, to=Member(ConsumerId(4), ME.incarnation))
    older = gives(8, A, to=OTHER)
    membership = member().received([foreign, older], 0)
    assert membership.decision == Decision()
    assert membership.ending is None


def test_retire_is_for_good():
    membership = reading(A).received([retire(6)], 1).received([gives(7, A, B)], 2)
    assert membership.ending is Ending.RETIRED
    assert membership.decision == Decision(offset=7, ends=True)


# Which incarnation is newer


def test_gift_to_another_incarnation_behind_an_assignment_of_ours_ends_us():
    for gift in (gives(9, B, to=OTHER), gives(9, to=OTHER, pending={B})):
        membership = reading(A).received([gift], 1)
        assert membership.ending is Ending.SUPERSEDED
        assert membership.owned == {A}, "held until the batch in hand is done"
        assert membership.decision == Decision(offset=5, ends=True)


def test_other_assignments_to_another_incarnation_do_not():
    """Before any of ours it may be of a time when nobody knew of us; what empties or retires it says nothing of us."""
    membership = member().received([gives(4, A, to=OTHER)], 0)
    assert membership.ending is None
    membership = membership.received([gives(5, to=OTHER, revoking={A}), gives(6, B)], 0)
    assert membership.decision.owned == {B}
    emptied = reading(A).received([gives(6, to=OTHER, revoking={B}), gives(7, to=OTHER), retire(8, OTHER)], 0)
    assert emptied.ending is None


@given(st.integers(0, 8), st.integers(0, 8), st.lists(st.tuples(st.booleans(), st.booleans()), min_size=9, max_size=16))
def test_never_do_both_twins_end(learned, joined, steps):
    """A controller that follows rule 5: before it knows of the newer one it gives to the older, then never again."""
    queue = []
    for offset, (to_newer, gift) in enumerate(steps):
        knows_both = offset >= learned
        to = OTHER if to_newer and knows_both else ME
        gives_now = gift and (to == OTHER or not knows_both)
        queue.append(gives(offset, *([A] if gives_now else []), to=to))
    newer = Membership.join(Identity(OTHER, PROCESS), PACE, 0.0)
    assert newer.received(queue[min(joined, learned) :], 0).ending is None


# Letting go and taking up


def test_lost_partition_stays_reported_until_the_batch_in_hand_is_over():
    membership = reading(A, B).began(10).received([gives(6, B, C, revoking={A})], 10)
    membership, during = membership.next_message(12)
    assert isinstance(during, Heartbeat), "nothing has been acted on yet"
    membership = membership.appended(during, 12).rested()
    membership, report = said(act(membership, 13), 13)
    assert (report.applied, report.owned) == (6, {B, C})


def test_same_sets_assigned_again_are_acknowledged():
    """Revoke and re-assign to the same consumer is a new Assignment; the controller waits for its offset."""
    membership, report = said(act(reading(A).received([gives(6), gives(7, A)], 1), 1), 1)
    assert (report.applied, report.owned) == (7, {A})
    assert membership.is_acted_on


def test_drain_is_timed_from_the_assignment_to_the_report_without_the_partition():
    membership = act(reading(A, B).received([gives(6, B, revoking={A})], 10), 13)
    membership, report = said(membership, 13)
    assert (report.drains, report.last_drain_s, report.max_drain_s) == (1, 3, 3)
    membership = act(membership.received([gives(7, revoking={B})], 20).received([gives(8)], 20.5), 21)
    _, report = said(membership, 21)
    assert (report.drains, report.last_drain_s, report.max_drain_s) == (2, 1, 3)


def test_partition_given_back_before_it_was_let_go_is_no_drain():
    membership = act(reading(A).received([gives(6, revoking={A}), gives(7, A)], 1), 2)
    assert membership.drains.count == 0
    assert act(membership.received([gives(8)], 5), 6).drains.last_s == 1


def test_drain_of_an_assignment_that_came_while_an_earlier_one_was_acted_on():
    membership = reading(A)
    decision = membership.received([gives(6, A, B)], 1).decision
    late = membership.received([gives(6, A, B), gives(7, A)], 1.5).acted(decision, 2)
    assert act(late, 4).drains.last_s == 2


# Ending


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lambda m: m.asked_to_end(), Ending.ASKED),
        (lambda m: m.received([retire(6)], 1), Ending.RETIRED),
        (lambda m: m.received([gives(6, A, to=OTHER)], 1), Ending.SUPERSEDED),
        (lambda m: m.failed("5 rounds failed"), Ending.FAILED),
    ],
)
def test_end_drains_says_so_and_is_over_with_the_last_word(end, why):
    membership, draining = said(end(reading(A).began(1)), 1)
    words = "5 rounds failed" if why is Ending.FAILED else ""
    assert (draining.phase, draining.owned, draining.ending, draining.why) == (Phase.DRAINING, {A}, why, words)
    membership, last = said(act(membership.rested(), 2), 2)
    assert (last.phase, last.owned, last.ending, last.why) == (Phase.ENDED, frozenset(), why, words)
    assert membership.is_over
    assert membership.next_message(100) == (membership, None)


def test_the_first_reason_to_end_counts():
    """Who was asked to end and then meets an error has not failed."""
    assert reading(A).asked_to_end().failed("an error on the way out").ending is Ending.ASKED
    failed = reading(A).failed("an error").asked_to_end()
    assert (failed.ending, failed.why) == (Ending.FAILED, "an error")


def test_end_of_the_loop_counts_as_end_whether_asked_for_or_not():
    membership, last = said(reading(A).end(3), 3)
    assert (last.phase, last.owned) == (Phase.ENDED, frozenset())
    assert membership.end(4) == membership


def deaf(until):
    """It is heard all the time, and has not looked at its queue with success since second 0."""
    membership = reading(A, now=0)
    for now in range(2, until + 1, 2):
        membership, _ = said(membership, now)
    return membership


def test_who_is_heard_and_cannot_hear_drains_and_ends_and_is_fenced_where_it_does_not():
    """What it was given would lie unread for ever: it is alive by its reports, no assignment takes anything back."""
    assert deaf(90).deaf_reason(90) is None
    assert deaf(92).deaf_reason(92) == "no assignment could be read for 90 s (3 x suspect_after_s)"
    assert deaf(120).fence_reason(120) is None
    assert deaf(122).fence_reason(122) == "no assignment could be read for 120 s (4 x suspect_after_s)"
    assert deaf(122).failed("deaf").fence_reason(122) is None, "it is about to end"
    assert deaf(122).listened(121).deaf_reason(122) is None


def test_while_nobody_can_write_and_nothing_is_committed_it_waits_as_long_as_ever():
    """Kafka is away, for all: a new process would wait as well, and begin later."""
    membership = reading(A, now=0).landed(3)
    for now in (50, 91, 1000):
        assert (membership.deaf_reason(now), membership.fence_reason(now)) == (None, None)
    back, _ = said(membership, 1000)
    for now in (1001, 1029):
        assert (back.deaf_reason(now), back.fence_reason(now)) == (None, None), "it has to hear first"


def test_who_commits_and_cannot_be_heard_is_ended_at_once():
    """Another one may read the same by now."""
    membership = reading(A, now=0)
    assert membership.landed(60).fence_reason(90) is None
    assert "no report could be appended for 90 s" in membership.landed(61).fence_reason(91)
    assert membership.landed(60).fence_reason(91) is None
    assert "no report could be appended for 90 s" in membership.landed(150).fence_reason(151)
    assert "no report could be appended for 90 s" in membership.asked_to_end().fence_reason(91)
    assert membership.end(1).fence_reason(1e6) is None, "it holds nothing any more"


def test_ends_at_once_when_a_batch_is_too_old():
    membership = reading(A).began(1)
    for now in range(2, 302, 2):
        membership, _ = said(membership.listened(now), now)
    assert membership.fence_reason(301) is None
    assert "batch older than batch_timeout_s=300" in membership.fence_reason(301.1)
    assert membership.rested().fence_reason(301.1) is None
    in_hand = membership.rested(1)
    assert "batch older than batch_timeout_s=300" in in_hand.fence_reason(301.1), "its table is late"


def test_silence_of_the_controller_is_no_reason_to_end():
    membership = reading(A)
    for now in range(2, 100_000, 50):
        membership, _ = said(membership.listened(now), now)
        assert membership.fence_reason(now) is None
    assert membership.decision.owned == {A}
