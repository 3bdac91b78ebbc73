"""What a member of the group reports, and when: in full on every change, heartbeats between."""

from dataclasses import replace

import pytest

from kgs_core.group.membership.member import Facts
from kgs_core.group.membership.membership import FULL_EVERY_S
from kgs_core.group.protocol import Heartbeat, Report
from kgs_core.group.protocol.codec import encode
from kgs_core.group.protocol.parts import FlatOut, WorkDone
from tests.core.group.membership.membership_words import A, B, C, act, gives, reading, said


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


def test_how_far_it_has_read_is_said_soon_once_it_reads_nothing():
    membership, _ = said(reading(A).noted(Facts(positions={A: 3}, bytes_per_s=1.0)), 1)
    assert membership.noted(Facts(positions={A: 4}, bytes_per_s=1.0)).next_message(8)[1].__class__ is Heartbeat
    rests = membership.noted(Facts(positions={A: 4}))
    assert rests.next_message(5)[1].__class__ is Heartbeat
    rests, report = said(rests, 6)
    assert report.positions == {A: 4}
    assert rests.next_message(15)[1].__class__ is Heartbeat


@pytest.mark.parametrize(
    "change",
    [
        lambda m: act(m.received([gives(7, A)], 0)),
        lambda m: m.noted(Facts(stopped={A: "poison"})),
        lambda m: m.noted(Facts(ready=frozenset({B}))),
        lambda m: m.noted(Facts(unready={B: "no rule"})),
        lambda m: m.asked_to_end(),
    ],
    ids=["assignment applied", "stopped", "ready", "not ready", "phase"],
)
def test_every_change_is_reported_at_once_and_in_full(change):
    membership, _ = said(act(reading(A).received([gives(6, A, pending=[B])], 0)), 0)
    assert membership.next_message(0.1)[1] is None
    assert isinstance(change(membership).next_message(0.1)[1], Report)


def test_facts_are_reported_of_owned_partitions_only():
    facts = Facts({A: "poison", C: "old"}, {A: 7, B: 8, C: 9}, 1e6)
    _, report = said(reading(A, B).noted(facts), 1)
    assert (report.stopped, report.positions, report.bytes_per_s) == ({A: "poison"}, {A: 7, B: 8}, 1e6)


def test_a_full_report_has_the_work_done_what_is_read_flat_out_and_the_age_of_the_batch():
    facts = Facts(work=WorkDone(commits=3), flat_out=FlatOut(92.0, 300.0, 0.0, 1000, 100, {"t": 100}))
    _, report = said(act(reading(A).noted(facts).began(10).received([gives(6, A, B)], 12), 12), 14)
    assert (report.work, report.flat_out, report.batch_age_s) == (facts.work, facts.flat_out, 4)


def test_which_topics_are_bad_is_news_and_how_bad_is_not():
    """Else a batch in which the share moves a little would cost a full report each."""
    membership, report = said(reading(A, B).noted(Facts(bad_shares={"t": 0.6, "given away": 0.9})), 1)
    assert report.bad_shares == {"t": 0.6}
    assert membership.noted(Facts(bad_shares={"t": 0.7})).next_message(1)[1] is None
    for news in ({"t": 1.0}, {}):
        assert membership.noted(Facts(bad_shares=news)).next_message(1)[1].bad_shares == news
    assert act(membership.received([gives(6, C)], 1)).next_message(1)[1].bad_shares == {"t": 0.6}
    assert membership.end(1).next_message(1)[1].bad_shares == {}


def test_position_that_moves_is_no_change_and_a_new_one_is():
    membership, report = said(reading(A, B).noted(Facts(positions={A: 7})), 1)
    assert report.positions == {A: 7}
    assert membership.noted(Facts(positions={A: 8})).next_message(1)[1] is None
    assert membership.noted(Facts(positions={A: 8, B: 0})).next_message(1)[1].positions == {A: 8, B: 0}


def test_heartbeat_never_confirms_a_report_of_unknown_fate():
    """The set goes and comes back; the report between may be in the log, so it must be said again in full."""
    membership, lost = act(reading(A).received([gives(6)], 1), 1).next_message(1)
    assert lost.owned == frozenset()
    membership = act(membership.received([gives(7, A)], 2), 2)
    membership = replace(membership, applied=5)  # as it was when the last known report was appended
    _, message = membership.next_message(2)
    assert isinstance(message, Report)


def test_batch_age_is_that_of_the_round_in_hand_and_never_negative():
    """A round may begin after the clock was read: that could not be encoded, and the thread of reports would end."""
    membership = reading(A).began(10)
    assert membership.next_message(14)[1].batch_age_s == 4
    assert membership.rested().next_message(14)[1].batch_age_s is None
    assert reading().began(10).next_message(14)[1].batch_age_s is None, "who owns nothing has no batch"
    encode(late := reading(A).began(4.001).next_message(4)[1])
    assert late.batch_age_s == 0


def test_what_is_pending_is_reported_as_ready_or_not_and_nothing_else_is():
    """Who waits for a partition says whether it could be read; what is owned or not coming any more is not told."""
    membership = act(reading(A).received([gives(6, A, pending=[B, C])], 0))
    membership = membership.noted(Facts(ready=frozenset({A, B}), unready={C: "no rule", A: "old"}))
    _, report = said(membership, 1)
    assert (report.ready, report.unready) == ({B}, {C: "no rule"})
    _, report = said(act(membership.received([gives(7, A)], 1)), 1)
    assert (report.ready, report.unready) == (frozenset(), {})
