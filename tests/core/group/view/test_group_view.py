"""Nothing late, doubled or dead changes the view."""

from dataclasses import replace

import pytest

from kgs_core.group.protocol import (
    DesiredState,
    DesiredVersion,
    Incarnation,
    Member,
    Phase,
    Received,
    RunState,
    Starting,
    Tombstone,
)
from kgs_core.group.view.group_view import GroupView
from kgs_core.model import ConsumerId
from tests.core.group.controller.group_words import (
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

DEAD = Tombstone(member("1a"))


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


@pytest.mark.parametrize(
    "late",
    [
        at(3, report("1a", "", sequence=4)),
        at(90, report("1a", "", sequence=5)),
        at(90, heartbeat("1a", 5, Phase.ENDED)),
        at(7, gives("1a", "")),
        at(6, gives("1a", "", "")),
        at(8, target("1a", c1="q")),
        at(2, DesiredState(RunState.STOPPED, "", 0)),
        at(2, DesiredVersion("0", "", "", 0)),
        at(90, report("1z")),
        at(90, gives("1z", "p")),
        at(1, Tombstone(member("1z"))),
    ],
)
def test_late_and_doubled_records_change_nothing(late):
    view = view_of(
        at(8, target("1a", c1="p")),
        at(7, gives("1a", "p")),
        at(4, report("1a", "p", 7, sequence=5)),
        at(2, DesiredState(RunState.PAUSED, "", 0)),
        at(3, DesiredVersion("1", "", "", 0)),
        at(1, Tombstone(member("1z"))),
    )
    assert view.take(late, 100.0) == view


def test_the_newest_desired_state_and_version_count_each_for_itself():
    view = view_of(at(0, DesiredState(RunState.PAUSED, "", 0)), at(1, DesiredVersion("1", "", "", 0)))
    view = view.take(at(2, DesiredVersion("2", "", "", 0)), 0.0).take(at(3, DesiredState(RunState.RUNNING, "", 0)), 0.0)
    assert (view.desired_state, view.wanted) == (DesiredState(RunState.RUNNING, "", 0), DesiredVersion("2", "", "", 0))


class TestWhoIsNewer:
    def test_the_target_lists_them_in_order(self):
        view = view_of(at(0, report("1b")), at(1, report("1a")), at(0, target("1a 2a 1b")), at(2, report("2a")))
        assert names(view) == ["1a", "2a", "1b"]
        assert view.newest()[1].member == member("1b")
        assert view.known == (member("1a"), member("2a"), member("1b"))

    def test_one_not_listed_is_newer_than_all_that_are(self):
        view = view_of(at(0, report("1b")), at(1, report("1a")), at(0, target("1a")))
        assert names(view) == ["1a", "1b"]

    def test_of_several_not_listed_the_first_report_decides(self):
        view = view_of(at(3, gives("1a", "p")), at(0, report("1c")), at(1, report("1b")), at(2, report("1c", "", 1, 1)))
        assert names(view) == ["1a", "1c", "1b"]

    def test_reports_that_have_expired_change_no_rank(self):
        """Of 1a, the older one, only late heartbeats are left; the Target remembers."""
        view = view_of(at(50, report("1b")), at(70, heartbeat("1a", 99)), at(0, target("1a 1b")))
        assert names(view) == ["1a", "1b"]

    def test_one_that_has_ended_gives_way_to_one_that_lives(self):
        view = view_of(at(0, report("1a")), at(1, report("1b")), at(2, report("1b", sequence=1, phase=Phase.ENDED)))
        assert view.newest()[1].member == member("1a")
        assert view.bury(["1a"]).newest()[1].member == member("1b")


class TestListedWithoutRecords:
    """Neither Assignment nor report: it cannot own anything, so it must not shut out one that lives."""

    def test_it_is_no_member(self):
        view = view_of(at(0, target("1a 1b")), at(0, report("1a", "p")))
        assert names(view) == ["1a"]
        assert view.newest()[1].member == member("1a")

    def test_when_it_reports_it_has_its_old_rank(self):
        view = view_of(at(0, target("1a 1b")), at(0, report("1b")), at(1, report("1a")))
        assert names(view) == ["1a", "1b"]

    def test_one_with_an_assignment_is_a_member_that_may_own_it(self):
        view = view_of(at(0, target("1a")), at(3, gives("1a", "p")))
        assert only(view).possibly_owned == tps("p")


class TestDeath:
    def test_the_dead_do_not_come_back(self):
        view = settled(c1="p").bury(["1a"])
        assert names(view) == []
        late = [at(90, report("1a", "p", 10, 9)), at(91, heartbeat("1a", 10)), at(92, gives("1a", "p"))]
        assert view.take_all(late, 5.0) == view

    def test_a_tombstone_is_a_confirmed_death(self):
        buried = settled(c1="p").bury(["1a"])
        assert (buried.dead, buried.unmarked) == ({"1a"}, {member("1a")})
        marked = buried.take(at(11, DEAD), 0.0)
        assert (marked.dead, marked.unmarked) == ({"1a"}, frozenset())
        assert settled(c1="p").take(at(11, DEAD), 0.0) == marked

    def test_burying_whom_nobody_knows_says_nothing(self):
        assert GroupView().bury(["1a"]) == GroupView()


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
    assert view.take_all([at(30, heartbeat("1a", 5))], 1.0).current() is view.current()
    assert view.take_all([at(30, report("1a", "pq", applied=10, sequence=5))], 1.0).current() is view.current()
    assert view.take_all([at(30, report("1a", "p", applied=10, sequence=5))], 1.0).current() == plan(c1="p", c2="r")
    assert view.take_all([at(30, gives("1a", "q")), at(31, report("2a", "qr", sequence=5))], 1.0).current() == plan(
        c1="pq", c2="r"
    )


def test_of_two_claims_the_newest_incarnation_of_a_consumer_counts():
    """1b joined last, but 1a is not the newest of its consumer: what 2a has counts more."""
    view = view_of(at(0, report("2a", "p")), at(1, report("1a", "p")), at(2, report("1b")))
    assert view.current() == plan(c2="p")


# What the topics may hold, each partition in its order


def test_a_process_that_waits_to_join_is_no_member():
    word = Starting(Member(ConsumerId(1), Incarnation("waits")), a_process(), "no space left")
    assert GroupView().take(Received(word, 0, 0), 0.0).members == {}
