"""The checker of a group's history: a right one is clean, and every broken rule is named."""

from dataclasses import replace

import pytest

from kgs_core.group.invariants.assignments import check_target
from kgs_core.group.protocol import DesiredState, Incarnation, Phase, Tombstone
from kgs_core.model import ConsumerId
from tests.core.group.view.group_words import at, gives, heartbeat, member, plan, report, target, tps
from tests.world.group_events import TRANSACTION_MS, Fact, FactKind, in_time, silences
from tests.world.group_history import GroupHistory, check_history

# 1a reads p and q, is told to give up q, does so; 2a gets it
BEGIN = [
    at(0, target("", c1="p", c2="q")),
    at(0, report("1a")),
    at(1, report("2a")),
    at(0, gives("1a", "pq")),
    at(0, gives("2a")),
    at(2, report("1a", "pq", 0, 1)),
    at(3, report("2a", "", 0, 1)),
]
STOP = [at(1, gives("1a", "p", "q")), at(1, gives("2a", pending="q"))]
STOPPED = [at(4, report("1a", "p", 1, 2))]
START = [at(2, gives("2a", "q"))]
STARTED = [at(5, report("2a", "q", 2, 2)), at(6, heartbeat("2a", 3))]
HANDOVER = [*BEGIN, *STOP, *STOPPED, *START, at(2, gives("1a", "p")), *STARTED, at(7, report("1a", "p", 2, 3))]
EARLY = "S4 q:0: enters the Assignment of 2@2a while 1@1a may hold it"
BOTH = "S1 by reports: q:0: owned by 1@1a and 2@2a"


def fact(name, kind, time_ms=0):
    return Fact(member(name).incarnation, kind, time_ms)


def test_a_handover_as_it_should_be():
    assert check_history(HANDOVER) == ()
    assert check_history([*HANDOVER, *HANDOVER]) == (), "doubled records say nothing new"


@pytest.mark.parametrize(
    ("events", "problems"),
    [
        ([*BEGIN, *STOP, *START, *STOPPED, *STARTED], [EARLY]),
        ([*BEGIN, *STOP, *START, *STARTED, *STOPPED], [EARLY, BOTH]),
        ([*BEGIN, *STOP, fact("1a", FactKind.DEAD), *START, *STARTED], []),
        ([*BEGIN, *STOP, at(9, Tombstone(member("1a"))), *START, *STARTED], []),
        ([*BEGIN, *STOP, at(4, heartbeat("1a", 2, Phase.ENDED)), *START, *STARTED], []),
        ([*BEGIN, *STOP, fact("1a", FactKind.SUSPECTED), *START, *STARTED], []),
        ([*BEGIN, *STOP, fact("1a", FactKind.SUSPECTED), fact("1a", FactKind.HEARD), *START, *STARTED], [EARLY, BOTH]),
        # Its last Assignment is not acted on yet: it may come to own what is in there
        ([*BEGIN[:5], at(1, gives("1a", "p", "q")), at(1, gives("2a", "q"))], [EARLY]),
        ([*BEGIN[:5], at(1, gives("1a", "p"))], ["S4 q:0: 1@1a may still hold it, and its Assignment does not say so"]),
        ([at(0, gives("1a", "p", "p"))], ["p:0: 1@1a is to own it and to give it up at once"]),
    ],
)
def test_when_a_partition_may_start_elsewhere(events, problems):
    assert list(check_history(events)) == problems


class TestSuspicion:
    EVENTS = (*BEGIN, fact("1a", FactKind.SUSPECTED), at(1, gives("2a", "q")), at(1, gives("1a", "p", "q")))
    BACK = (fact("1a", FactKind.HEARD), at(4, report("2a", "q", 1, 2)), at(5, heartbeat("1a", 2)))

    def test_a_stale_owner_is_no_fault(self):
        """Also where the halves of the transaction are read in the wrong order."""
        assert check_history([*self.EVENTS, *self.BACK]) == ()

    def test_but_one_with_strict_handover(self):
        assert check_history(self.EVENTS, strict=True) == (EARLY,)

    def test_its_assignment_loses_what_another_gains_in_the_same_step(self):
        history = GroupHistory()
        history.take(self.EVENTS[:-2])
        assert history.take(self.EVENTS[-2:-1]) == ("S1 by Assignments: q:0: owned by 1@1a and 2@2a",)
        assert history.take(self.EVENTS[-1:]) == ()
        assert check_history(self.EVENTS[:-1]) == ("S1 by Assignments: q:0: owned by 1@1a and 2@2a",)

    def test_its_assignment_loses_it_by_the_next_transaction_where_that_one_was_torn(self):
        history = GroupHistory()
        history.take(self.EVENTS[:-2])
        torn = {Incarnation("1a")}
        assert history.take(self.EVENTS[-2:-1], torn) == ()
        assert history.take([]) == ("S1 by Assignments: q:0: owned by 1@1a and 2@2a",)
        history = GroupHistory()
        history.take(BEGIN)
        assert history.take(self.EVENTS[-2:-1], torn)[-1] == "S1 by Assignments: q:0: owned by 1@1a and 2@2a"

    def test_it_excuses_one_handover_only(self):
        events = [*self.EVENTS, *self.BACK, at(6, report("3a")), at(2, gives("2a", "", "q"))]
        events += [at(7, report("2a", "", 2, 3)), at(0, gives("3a", "q"))]
        assert check_history(events) == ("S4 q:0: enters the Assignment of 3@3a while 1@1a may hold it",)
        events.insert(-1, at(8, report("1a", "p", 1, 3)))
        assert check_history(events) == ()

    def test_what_it_has_let_go_of_it_must_not_claim_again(self):
        events = [*self.EVENTS, *self.BACK, at(6, report("1a", "p", 1, 3))]
        assert check_history(events) == ()
        assert BOTH in check_history([*events, at(7, report("1a", "pq", 1, 4))])

    def test_what_comes_back_to_it_is_its_own_again(self):
        """2a gives q up, and 1a, which never let go of it, gets it anew: then 2a must not hold it, either."""
        events = [*self.EVENTS, *self.BACK, at(2, gives("2a", "", "q")), at(7, report("2a", "", 2, 4))]
        events.append(at(2, gives("1a", "pq")))
        assert check_history(events) == ()
        assert BOTH in check_history([*events, at(9, report("2a", "q", 2, 5))])

    def test_what_processes_really_hold_is_looked_at_with_the_same_excuse(self):
        history = GroupHistory()
        history.take(self.EVENTS)
        assert history.check_owners({member("1a"): tps("pq"), member("2a"): tps("q")}) == ()
        assert history.check_owners({member("1a"): tps("pq"), member("2a"): tps("p")}) == (
            "p:0: owned by 1@1a and 2@2a",
        )


@pytest.mark.parametrize(
    ("retire", "problems"),
    [
        ([at(4, report("1a", "", 1, 2)), at(2, gives("1a", retire=True))], []),
        ([at(2, gives("1a", "", "pq", retire=True))], ["S7 1@1a: is told to end while it may hold p:0, q:0"]),
        (
            [at(4, report("1a", "", 1, 2)), at(2, gives("1a", "p", retire=True))],
            ["S7 1@1a: is told to end, and given p:0"],
        ),
        (
            [at(4, report("1a", "", 1, 2)), at(2, gives("1a", retire=True)), at(3, gives("1a"))],
            ["S7 1@1a: was told to end, which is for good"],
        ),
    ],
)
def test_a_consumer_is_retired_when_it_owns_nothing(retire, problems):
    assert list(check_history([*BEGIN, at(1, gives("1a", "", "pq")), *retire])) == problems


@pytest.mark.parametrize(
    ("reports", "problems"),
    [
        ([report("1a", "p", 0, 2), report("1a", "pq", 0, 3)], ["S9 q:0: 1@1a started it without a new Assignment"]),
        (
            [report("1a", "pqr", 0, 2)],
            [
                "1@1a: owns r:0, which the Assignment that it applied (0) does not give it",
                "S9 r:0: 1@1a started it without a new Assignment",
            ],
        ),
        ([report("3a", "r")], ["3@3a: owns r:0 and was assigned nothing"]),
        ([report("1a", "q", 9, 2)], []),  # its Assignment was not read
    ],
)
def test_what_is_owned_was_assigned_and_what_comes_back_is_assigned_anew(reports, problems):
    events = [*BEGIN, *(at(10 + n, message) for n, message in enumerate(reports))]
    assert list(check_history(events)) == problems


class TestRealTime:
    """Records of several partitions as they are read: only the brokers' clock says what came first."""

    def test_of_equal_times_what_was_known_comes_first(self):
        last, first, begun = at(9, gives("1a"), 5), at(3, report("1a"), 5), fact("2a", FactKind.DEAD, 5)
        assert in_time([last, first, begun, at(0, DesiredState("paused", "", 0), 4)]) == [
            at(0, DesiredState("paused", "", 0), 4), begun, first, last
        ]  # fmt: skip

    def test_a_death_was_known_before_the_transaction_that_records_it(self):
        gain, mark = at(2, gives("2a", "q"), 20_000), at(9, Tombstone(member("1a")), 20_000 + TRANSACTION_MS)
        assert check_history(in_time([*BEGIN, gain, mark])) == ()
        assert check_history(in_time([*BEGIN, gain, replace(mark, timestamp_ms=mark.timestamp_ms + 1)])) == (EARLY,)

    def test_silence_is_a_gap_in_the_reports(self):
        records = [
            at(0, report("1a"), 0),
            at(1, report("2a"), 0),
            at(0, gives("1a"), 1_000),
            at(2, heartbeat("2a", 1), 30_000),
            at(3, heartbeat("1a", 1), 30_001),
            at(4, heartbeat("2a", 2), 90_000),
        ]
        assert silences(records, 30.0) == (
            fact("1a", FactKind.SUSPECTED, 30_000),
            fact("1a", FactKind.HEARD, 40_001),
            fact("2a", FactKind.SUSPECTED, 60_000),
            fact("1a", FactKind.SUSPECTED, 60_001),
            fact("2a", FactKind.HEARD, 100_000),
        )

    def test_a_silent_consumer_may_lose_its_partitions(self):
        gained = [
            at(4, heartbeat("2a", 2), 31_000),
            at(1, gives("1a", "p", "q"), 31_000),
            at(1, gives("2a", "q"), 31_000),
        ]
        records = [*BEGIN, *gained]
        assert check_history(in_time([*records, *silences(records, 30.0)])) == ()
        assert check_history(in_time([*records, *silences(records, 40.0)])) == (EARLY,)

    def test_facts_of_one_that_no_record_has_named_yet_are_kept(self):
        assert check_history([fact("1a", FactKind.DEAD), *BEGIN[3:4], at(0, gives("2a", "q"))]) == ()


def test_a_target_is_looked_at_with_its_own_speeds():
    right = replace(target(c1="pq", c2="r"), capacity=2.0)
    assert check_history([at(0, right)]) == ()
    full = replace(right, capacity=1.5)
    above = "consumer 1: 2 bytes/s in 2 partitions is above 1.5"
    assert check_target(full) == (above,)
    assert check_target(full, max_consumers=2) == ()
    assert check_target(replace(full, pinned=tps("pq"))) == ()
    assert check_history([at(3, full), at(3, full)]) == (f"S6 in Target 3: {above}",)
    assert check_history([at(3, full)], max_consumers=2) == ()
    missing = replace(right, assignment=plan(c1="pq"))
    assert check_target(missing) == ("r:0: has no consumer",)
    quarantined = replace(right, quarantined=(ConsumerId(2), ConsumerId(4)))
    assert check_target(quarantined) == ("consumer 2 is quarantined, and is to run",)
