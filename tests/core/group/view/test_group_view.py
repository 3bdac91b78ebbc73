"""Nothing late, doubled or dead changes the view."""

from dataclasses import replace

import pytest

from kgs_core.group.protocol import DesiredState, DesiredVersion, Phase, RunState, Starting, Tombstone
from kgs_core.group.view.group_view import GroupView
from kgs_core.model import ConsumerId
from tests.core.group.view.group_words import (
    add,
    at,
    gives,
    heartbeat,
    member,
    plan,
    report,
    settled,
    target,
    tps,
    view_of,
)
from tests.processes import a_process


def names(view):
    return list(view.members)


def only(view, name="1a"):
    return view.members[member(name).incarnation]


def test_an_earlier_report_that_arrives_once_more_takes_no_last_word_away():
    """A report without an answer is sent by a second client as well."""
    first, last = report("1a"), replace(report("1a", sequence=1, phase=Phase.ENDED), why="5 rounds failed")
    failures = {ConsumerId(1): "5 rounds failed"}
    assert view_of(at(0, first), at(1, last), at(2, first)).failures == failures
    assert view_of(at(0, first), at(1, last), at(2, report("1b"))).failures == {}


@pytest.mark.parametrize(
    ("last_assignment", "last_report", "possible"),
    [
        (None, None, ""),
        (None, report("1a", "p"), "p"),
        (at(5, gives("1a", "p", "q")), None, "pq"),
        (at(5, gives("1a", "p", "q")), report("1a", "r"), "pqr"),
        (at(5, gives("1a", "p", "q")), report("1a", "r", applied=4), "pqr"),
        (at(5, gives("1a", "p", "q")), report("1a", "p", applied=5), "p"),
        (at(5, gives("1a", "p", "q")), report("1a", "r", applied=6), "r"),
        (at(5, gives("1a", pending="p")), report("1a", applied=4), ""),
        (at(5, gives("1a", "p", "q")), report("1a", "r", applied=4, phase=Phase.DRAINING), "pqr"),
        (at(5, gives("1a", "p", "q")), report("1a", "r", applied=4, phase=Phase.ENDED), ""),
    ],
)
def test_what_an_incarnation_may_own(last_assignment, last_report, possible):
    """Rule 3: its report, and its last Assignment unless that report came after acting on it."""
    records = [at(0, target("1a"))] + ([last_assignment] if last_assignment else [])
    records += [at(9, last_report)] if last_report else []
    view = view_of(*records)
    assert (only(view).possibly_owned if view.members else tps("")) == tps(possible)


def test_a_heartbeat_goes_into_the_last_full_report():
    full = report("1a", "p", applied=3)
    view = view_of(at(0, full), at(1, heartbeat("1a", 1, Phase.DRAINING, 7.0)))
    assert only(view).report == replace(full, sequence=1, phase=Phase.DRAINING, bytes_per_s=7.0)
    assert only(view).first_heard == 0


def test_a_heartbeat_whose_full_report_has_expired_is_a_sign_of_life_and_no_more():
    view = view_of(at(4, gives("1a", "p")), at(5, heartbeat("1a", 8)))
    assert only(view).report is None
    assert only(view).last_seen_at == 0.0
    assert only(view).possibly_owned == tps("p")
    assert view.joined() == frozenset()
    assert view.take(at(6, report("1a", "p", 4, sequence=9)), 1.0).joined() == {1}


def test_the_newest_desired_state_and_version_count_each_for_itself():
    view = view_of(at(0, DesiredState(RunState.PAUSED, "", 0)), at(1, DesiredVersion("1", "", "", 0)))
    view = view.take(at(2, DesiredVersion("2", "", "", 0)), 0.0).take(at(3, DesiredState(RunState.RUNNING, "", 0)), 0.0)
    assert (view.desired_state, view.wanted) == (DesiredState(RunState.RUNNING, "", 0), DesiredVersion("2", "", "", 0))


@pytest.mark.parametrize(
    ("records", "found"),
    [
        ([at(0, report("1b")), at(1, report("1a")), at(0, target("1a 2a 1b")), at(2, report("2a"))], "1a 2a 1b"),
        ([at(0, report("1b")), at(1, report("1a")), at(0, target("1a"))], "1a 1b"),
        (
            [at(3, gives("1a", "p")), at(0, report("1c")), at(1, report("1b")), at(2, report("1c", "", 1, 1))],
            "1a 1c 1b",
        ),
        ([at(50, report("1b")), at(70, heartbeat("1a", 99)), at(0, target("1a 1b"))], "1a 1b"),
        ([at(0, target("1a 1b")), at(0, report("1a", "p"))], "1a"),
        ([at(0, target("1a 1b")), at(0, report("1b")), at(1, report("1a"))], "1a 1b"),
        ([at(0, target("1a")), at(3, gives("1a", "p"))], "1a"),
        ([at(0, Starting(member("1a"), a_process(), "no space left"))], ""),
    ],
    ids=[
        "the Target lists them in order",
        "one not listed is newer than all that are",
        "of several not listed the first report decides",
        "reports that have expired change no rank",
        "listed without records it cannot own anything and shuts out nobody",
        "when it reports it has its old rank",
        "one with an assignment is a member",
        "a process that waits to join is none",
    ],
)
def test_who_is_a_member_the_oldest_first(records, found):
    assert names(view_of(*records)) == found.split()


def test_the_newest_of_a_consumer_is_the_last_that_lives():
    view = view_of(at(0, report("1b")), at(1, report("1a")), at(0, target("1a 1b")))
    assert (view.newest()[1].member, view.known) == (member("1b"), (member("1a"), member("1b")))
    view = view.take(at(2, report("1b", sequence=1, phase=Phase.ENDED)), 0.0)
    assert view.newest()[1].member == member("1a")
    assert view.bury(["1a"]).newest()[1].member == member("1b")


def test_the_dead_do_not_come_back_and_a_tombstone_is_a_confirmed_death():
    buried = settled(c1="p").bury(["1a"])
    assert (names(buried), buried.dead, buried.unmarked) == ([], {"1a"}, {member("1a")})
    late = [at(90, report("1a", "p", 10, 9)), at(91, heartbeat("1a", 10)), at(92, gives("1a", "p"))]
    assert buried.take_all(late, 5.0) == buried
    marked = buried.take(at(11, Tombstone(member("1a"))), 0.0)
    assert (marked.dead, marked.unmarked) == ({"1a"}, frozenset())
    assert settled(c1="p").take(at(11, Tombstone(member("1a"))), 0.0) == marked
    assert GroupView().bury(["1a"]) == GroupView(), "nobody knows it"


class TestSilence:
    def test_of_what_is_read_at_once_the_newest_report_counts_as_now(self):
        """An hour old is no sign of life, in whatever order the records come."""
        records = [at(1, report("2a"), ms=3_600_000), at(0, report("1a"), ms=0), at(2, heartbeat("2a", 1), 3_605_000)]
        view = view_of(*records, now=10_000.0)
        assert (only(view, "1a").last_seen_at, only(view, "2a").last_seen_at) == (10_000.0 - 3605.0, 10_000.0)
        assert view.suspects(10_000.0, 30.0) == {"1a"}
        assert view.suspects(10_030.0, 30.0) == {"1a"}
        assert view.suspects(10_030.1, 30.0) == {"1a", "2a"}

    def test_a_clock_that_was_set_back_makes_no_suspect(self):
        view = view_of(at(0, report("1a"), ms=9_000_000), now=5.0)
        view = view.take_all([at(1, heartbeat("1a", 1), ms=0), at(2, report("2a"), ms=9_000_000)], 6.0)
        assert only(view).last_seen_at == 5.0

    def test_another_leader_whose_clock_is_behind_makes_no_suspects(self):
        """The reports' partition has moved to a broker 40 s behind: whoever reports there came after all before it."""
        there = [at(0, report("1a"), ms=100_000), at(1, report("2a"), ms=101_000)]
        here = [at(2, heartbeat("1a", 1), ms=62_000), at(3, heartbeat("2a", 1), ms=63_000)]
        view = view_of(*there, *here, now=1_000.0)
        assert (only(view, "1a").last_seen_at, only(view, "2a").last_seen_at) == (1_000.0, 1_000.0)
        silent = view_of(*there, here[1], now=1_000.0)
        assert only(silent, "1a").last_seen_at == 999.0, "as long ago as the first broker's clock says, at least"

    def test_one_that_was_never_heard_is_given_time(self):
        """Its reports may have been lost with their topic while it lives."""
        view = view_of(at(0, gives("1a", "p")), now=100.0)
        assert view.suspects(130.0, 30.0) == frozenset()
        assert view.suspects(130.1, 30.0) == {"1a"}
        assert view.take(at(9, target("1a")), 120.0).suspects(130.1, 30.0) == {"1a"}


class TestJoined:
    @pytest.mark.parametrize(
        ("records", "joined"),
        [
            ([at(0, report("1a"))], {1}),
            ([at(0, report("1a", phase=Phase.STARTING))], {1}),
            ([at(0, gives("1a"))], set()),
            ([at(0, report("1a")), at(1, heartbeat("1a", 1, Phase.ENDED))], set()),
            ([at(0, report("1a")), at(0, gives("1a", retire=True))], set()),
            ([at(0, report("1a")), at(0, gives("1a", retire=True)), at(1, report("1b"))], {1}),
            ([at(0, report("1a")), at(1, report("1b")), at(0, gives("1b", retire=True))], set()),
        ],
    )
    def test_its_newest_incarnation_takes_partitions(self, records, joined):
        assert view_of(*records).joined() == joined

    def test_a_suspect_has_not_joined_and_does_not_hand_on_to_an_older_one(self):
        view = view_of(at(0, report("1a")), at(1, report("1b")))
        assert view.joined(frozenset({"1b"})) == frozenset()
        assert view.joined(frozenset({"1a"})) == {1}


def test_current_is_what_the_living_report():
    view = view_of(
        at(0, report("1a", "pq")),
        at(1, report("2a", "r")),
        at(2, report("3a", "s")),
        at(3, heartbeat("3a", 1, Phase.ENDED)),
    )
    assert view.current() == plan(c1="pq", c2="r")
    view = view.take_all([at(4, report("2a", "qr", sequence=1)), at(5, report("1b", "p"))], 0.0)
    assert view.current() == plan(c1="p", c2="qr")


def test_who_reads_what_is_worked_out_again_only_where_somebody_reports_other_partitions():
    view = settled(c1="pq", c2="r")
    for same in (heartbeat("1a", 5), report("1a", "pq", applied=10, sequence=5)):
        assert add(view, at(30, same)).current() is view.current()
    assert add(view, at(30, report("1a", "p", applied=10, sequence=5))).current() == plan(c1="p", c2="r")
    assert add(view, at(30, gives("1a", "q")), at(31, report("2a", "qr", sequence=5))).current() == view.current()


def test_the_zone_of_a_process_that_has_ended_is_not_that_of_the_next_one():
    first, second = (at(n, replace(report(f"{n}a"), zone="x")) for n in (1, 2))
    view = view_of(first, second)
    assert view.zones() == {1: "x", 2: "x"}
    assert add(view, at(3, heartbeat("2a", 1, Phase.ENDED))).zones() == {1: "x"}


def test_of_two_claims_the_newest_incarnation_of_a_consumer_counts():
    """1b joined last, but 1a is not the newest of its consumer: what 2a has counts more."""
    view = view_of(at(0, report("2a", "p")), at(1, report("1a", "p")), at(2, report("1b")))
    assert view.current() == plan(c2="p")
