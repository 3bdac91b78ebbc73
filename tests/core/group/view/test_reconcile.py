"""Each next Assignment, and that nothing is written which has been written."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.group.protocol import Phase, Tombstone
from kgs_core.group.view.reconcile import Changes, converged, reconcile, waiting
from kgs_core.model import ConsumerId
from tests.core.group.controller.group_words import (
    add,
    at,
    carried_out,
    gives,
    heartbeat,
    member,
    plan,
    report,
    settled,
    tps,
    view_of,
)

LIMITS = settings(max_examples=60, deadline=None)  # a busy machine is no fault of ours


def assignments(view, desired, wanted=(1, 2, 3), suspected=(), strict=True):
    return list(reconcile(view, desired, wanted, frozenset(suspected), strict=strict).assignments)


def test_new_consumers_are_told_what_they_own_even_if_it_is_nothing():
    """The Assignment of a spare tells an older process of the same consumer to go."""
    view = view_of(at(0, report("1a")), at(1, report("2a")))
    assert assignments(view, plan(c1="pq")) == [gives("1a", "pq"), gives("2a")]


def test_what_is_as_desired_is_written_once():
    assert assignments(settled(c1="p", c2="q", c3=""), plan(c1="p", c2="q")) == []


class TestHandover:
    DESIRED = plan(c1="p", c2="q")

    def test_stop_first(self):
        assert assignments(settled(c1="pq", c2=""), self.DESIRED) == [gives("1a", "p", "q"), gives("2a", pending="q")]

    def test_start_only_when_the_report_says_so(self):
        view = add(settled(c1="pq", c2=""), at(11, gives("1a", "p", "q")), at(11, gives("2a", pending="q")))
        assert assignments(view, self.DESIRED) == []
        view = add(view, at(5, report("1a", "pq", 10, 1)))
        assert assignments(view, self.DESIRED) == []
        view = add(view, at(6, report("1a", "p", 11, 2)))
        assert assignments(view, self.DESIRED) == [gives("1a", "p"), gives("2a", "q")]

    def test_what_may_still_be_read_from_the_queue_counts(self):
        """It reports nothing yet, but the Assignment is on its way."""
        view = add(settled(c1="", c2=""), at(11, gives("1a", "q")))
        assert assignments(view, plan(c2="q")) == [gives("1a", "", "q"), gives("2a", pending="q")]
        view = add(view, at(12, gives("1a", "", "q")), at(11, gives("2a", pending="q")))
        assert assignments(view, plan(c2="q")) == []

    def test_a_change_of_mind_gives_it_back_by_a_new_assignment(self):
        view = add(settled(c1="q", c2=""), at(11, gives("1a", "", "q")), at(11, gives("2a", pending="q")))
        assert assignments(view, plan(c1="q")) == [gives("1a", "q"), gives("2a")]

    def test_both_halves_of_a_swap_wait_for_each_other(self):
        view = settled(c1="p", c2="q")
        assert assignments(view, plan(c1="q", c2="p")) == [gives("1a", "", "p", "q"), gives("2a", "", "q", "p")]


class TestDesiredConsumerIsNotThere:
    def test_partitions_stay_where_they_are(self):
        assert assignments(settled(c1="pq"), plan(c1="p", c3="q")) == []

    def test_with_a_consumer_that_is_not_wanted_and_a_silent_one_too(self):
        view = settled(c1="p", c2="q")
        assert assignments(view, plan(c3="pq"), wanted=[3], suspected=["2a"], strict=False) == []

    def test_what_was_on_its_way_goes_back(self):
        """2a died before it was given q; 1a was told to give it up and has not yet said that it did."""
        view = add(settled(c1="q", c2=""), at(11, gives("1a", "", "q")), at(11, gives("2a", pending="q"))).bury(["2a"])
        assert assignments(view, plan(c2="q")) == [gives("1a", "q")]

    def test_what_was_given_up_waits(self):
        view = add(settled(c1="q"), at(11, gives("1a", "", "q")), at(5, report("1a", "", 11, 1)))
        assert assignments(view, plan(c2="q")) == [gives("1a")]

    def test_what_another_may_hold_does_not_go_back(self):
        view = add(settled(c1="q", c2="q"), at(11, gives("1a", "", "q")), at(11, gives("2a", "", "q")))
        assert assignments(view, plan(c3="q")) == []

    def test_a_silent_desired_consumer_keeps_what_it_has(self):
        view = settled(c1="p", c2="q")
        assert assignments(view, plan(c1="p", c2="q"), suspected=["2a"], strict=False) == []

    def test_a_silent_one_is_given_nothing(self):
        view = settled(c1="p", c2="")
        assert assignments(view, plan(c2="pr"), suspected=["2a"], strict=False) == [gives("2a", pending="p")]


class TestSilence:
    VIEW = settled(c1="p", c2="q")
    DESIRED = plan(c2="pq")

    def test_it_frees_partitions_in_the_same_changes(self):
        found = reconcile(self.VIEW, self.DESIRED, [1, 2], frozenset({"1a"}), strict=False)
        assert found == Changes((gives("1a", "", "p"), gives("2a", "pq")))

    def test_strict_waits_for_a_confirmed_death(self):
        assert assignments(self.VIEW, self.DESIRED, suspected=["1a"]) == [
            gives("1a", "", "p"),
            gives("2a", "q", pending="p"),
        ]
        assert assignments(self.VIEW.bury(["1a"]), self.DESIRED) == [gives("2a", "pq")]

    def test_one_that_is_back_counts_again(self):
        """It still holds p, and 2a is to hand it on."""
        view = add(self.VIEW, at(11, gives("1a", "", "p")), at(11, gives("2a", "pq")), at(3, report("2a", "pq", 11, 1)))
        view = add(view, at(4, report("3a")))
        assert assignments(view, plan(c2="q", c3="p")) == [gives("2a", "q", "p"), gives("3a", pending="p")]
        view = add(view, at(12, gives("2a", "q", "p")), at(5, report("2a", "q", 12, 2)))
        assert assignments(view, plan(c2="q", c3="p"))[-1] == gives("3a", pending="p")
        view = add(view, at(6, report("1a", "", 11, 1)))
        assert assignments(view, plan(c2="q", c3="p"))[-1] == gives("3a", "p")


class TestIncarnations:
    def test_an_older_one_is_emptied_and_the_new_one_waits_for_it(self):
        view = add(settled(c1="p"), at(5, report("1b")))
        assert assignments(view, plan(c1="p")) == [gives("1a", "", "p"), gives("1b", pending="p")]
        view = add(view, at(11, gives("1a", "", "p")), at(12, gives("1b", pending="p")))
        assert assignments(view, plan(c1="p")) == []
        assert assignments(view.bury(["1a"]), plan(c1="p")) == [gives("1b", "p")]

    def test_an_older_one_that_never_had_anything_needs_no_assignment(self):
        view = view_of(at(0, report("1a")), at(1, report("1b")))
        assert assignments(view, plan(c1="p")) == [gives("1b", "p")]

    def test_one_that_has_ended_is_emptied_so_that_its_report_may_expire(self):
        view = add(settled(c1="p", c2=""), at(5, heartbeat("1a", 1, Phase.ENDED)))
        assert assignments(view, plan(c1="p")) == [gives("1a")]
        assert assignments(view, plan(c2="p")) == [gives("1a"), gives("2a", "p")]

    def test_the_dead_get_a_tombstone_once(self):
        """One that was never assigned anything, too: else its report makes it a new one to the next controller."""
        view = add(settled(c1="p"), at(9, report("2a"))).bury(["1a", "2a"])
        found = reconcile(view, {}, [], frozenset(), strict=True)
        assert found == Changes((), (Tombstone(member("1a")), Tombstone(member("2a"))))
        assert found
        view = add(view, at(20, found.tombstones[0]), at(20, found.tombstones[1]))
        assert not reconcile(view, {}, [], frozenset(), strict=True)


class TestRetire:
    def test_first_empty_then_told_to_end(self):
        view = settled(c1="p", c2="q")
        assert assignments(view, plan(c1="pq"), [1]) == [gives("1a", "p", pending="q"), gives("2a", "", "q")]
        view = add(view, at(11, gives("2a", "", "q")), at(11, gives("1a", "p", pending="q")))
        assert assignments(view, plan(c1="pq"), [1]) == []
        view = add(view, at(5, report("2a", "", 11, 1)))
        assert assignments(view, plan(c1="pq"), [1]) == [gives("1a", "pq"), gives("2a")]
        view = add(view, at(14, gives("1a", "pq")), at(14, gives("2a")))
        assert assignments(view, plan(c1="pq"), [1]) == [], "q is unread still: whoever has joined may be needed"
        view = add(view, at(6, report("1a", "pq", 14, 1)))
        assert assignments(view, plan(c1="pq"), [1]) == [gives("2a", retire=True)]

    def test_one_that_has_just_joined_is_first_assigned_nothing(self):
        view = view_of(at(0, report("2a")))
        assert assignments(view, {}, []) == [gives("2a")]
        assert assignments(add(view, at(1, gives("2a"))), {}, []) == [gives("2a", retire=True)]

    def test_a_spare_stays(self):
        assert assignments(settled(c1="p", c2=""), plan(c1="p"), [1, 2]) == []

    def test_whose_partitions_have_no_taker_stays(self):
        assert assignments(settled(c1="p", c2="q"), plan(c1="p", c3="q"), [1, 3]) == []

    def test_it_is_for_good(self):
        """Wanted again, its consumer waits for a new incarnation."""
        view = add(settled(c1="pq", c2=""), at(11, gives("2a", retire=True)))
        assert assignments(view, plan(c1="p", c2="q"), [1, 2]) == []
        view = add(view, at(9, report("2b")))
        assert assignments(view, plan(c1="p", c2="q"), [1, 2]) == [gives("1a", "p", "q"), gives("2b", pending="q")]

    def test_who_has_ended_is_told_nothing_more(self):
        assert assignments(add(settled(c1=""), at(5, heartbeat("1a", 1, Phase.ENDED))), {}, []) == []

    def test_who_is_to_read_something_stays_even_if_nobody_listed_it(self):
        view = add(settled(c1="p", c2=""), at(11, gives("2a", pending="p")), at(11, gives("1a", "", "p")))
        assert assignments(view, plan(c2="p"), [1]) == []

    def test_stopped_is_nothing_desired_and_nobody_wanted(self):
        view = settled(c1="p", c2="q")
        assert assignments(view, {}, []) == [gives("1a", "", "p"), gives("2a", "", "q")]


def test_a_partition_that_is_gone_leaves_every_set_but_what_may_be_held():
    view = add(settled(c1="pq", c2=""), at(11, gives("1a", "p", "q")), at(11, gives("2a", pending="q")))
    assert assignments(view, plan(c1="p")) == [gives("2a")]
    assert assignments(view, {}) == [gives("1a", "", "pq"), gives("2a")]


def test_paused_and_resumed():
    view = add(settled(c1="p"), at(11, gives("1a", "", "p")), at(5, report("1a", "", 11, 1)))
    assert assignments(view, {}) == [gives("1a")]
    assert assignments(view, plan(c1="p")) == [gives("1a", "p")]


class TestProgress:
    def said(self, view, desired, **keywords):
        return [str(found) for found in waiting(view, desired, **keywords)]

    def test_why_each_partition_waits(self):
        view = add(
            settled(c1="pq", c2="", c4=""),
            at(11, gives("2a", "r")),
            at(11, gives("4a", retire=True)),
            at(20, report("5a")),
        )
        assert self.said(view, plan(c1="p", c2="qr", c3="s", c4="t", c5="u"), suspected=frozenset({"5a"})) == [
            "q:0 for consumer 2: held by 1@1a",
            "r:0 for consumer 2: 2@2a has not reported it yet",
            "s:0 for consumer 3: it has not joined",
            "t:0 for consumer 4: 4@4a was told to end, and no other has joined",
            "u:0 for consumer 5: 5@5a is silent",
        ]

    def test_nothing_waits_when_all_have_reported(self):
        assert self.said(settled(c1="p", c2="q"), plan(c1="p", c2="q")) == []

    @pytest.mark.parametrize(
        ("view", "desired", "wanted", "suspected", "done"),
        [
            (settled(c1="p", c2="q"), plan(c1="p", c2="q"), [1, 2], "", True),
            (settled(c1="p", c2="q"), plan(c1="p", c2="q"), [1, 2], "2a", False),
            (settled(c1="p", c2="q"), plan(c1="p", c2="q"), [1, 2, 3], "", False),
            (settled(c1="pq"), plan(c1="p"), [1], "", False),
            (settled(c1="p", c2=""), plan(c1="p"), [1, 2], "", True),
            (settled(c1="p", c2=""), plan(c1="p"), [1], "", False),
            (add(settled(c1="p", c2=""), at(11, gives("2a", retire=True))), plan(c1="p"), [1], "", True),
            (add(settled(c1="p"), at(11, gives("1a", "pq"))), plan(c1="pq"), [1], "", False),
            (add(settled(c1="p"), at(11, gives("1a", "", "p"))), {}, [1], "", False),
            (add(settled(c1="p"), at(9, report("1b"))), plan(c1="p"), [1], "", False),
            (add(settled(c1="p"), at(9, report("2a", "q"))), plan(c1="p"), [1], "2a", False),
            (add(settled(c1="p"), at(0, report("1z", "q"), ms=-1)), plan(c1="p"), [1], "", False),
            (add(settled(c2="p"), at(0, report("1a", "p"))), plan(c2="p"), [2], "1a", False),
            (settled(), {}, [], "", True),
        ],
    )
    def test_converged(self, view, desired, wanted, suspected, done):
        assert converged(view, desired, wanted, frozenset(suspected.split())) is done


# Groups of any shape: nothing written twice, nobody given what another may hold
letters = st.sets(st.sampled_from("pqrs")).map("".join)
NAMES = ["1a", "1b", "2a", "2b", "3a"]


@st.composite
def views(draw):
    records = []
    for offset, name in enumerate(draw(st.permutations(NAMES))):
        if draw(st.booleans()):
            owned = draw(letters)
            revoking = "".join(set(draw(letters)) - set(owned))
            retire = draw(st.booleans()) and not owned and not revoking
            records.append(at(10 + offset, gives(name, owned, revoking, retire=retire)))
        if draw(st.integers(0, 3)):
            applied = draw(st.none() | st.integers(9, 15))
            phase = draw(st.sampled_from([Phase.READING, Phase.READING, Phase.ENDED]))
            records.append(at(offset, report(name, draw(letters), applied, offset, phase)))
    return view_of(*records).bury(draw(st.sets(st.sampled_from(NAMES), max_size=1)))


@LIMITS
@given(
    views(),
    st.dictionaries(st.sampled_from(sorted(tps("pqrs"))), st.sampled_from([ConsumerId(n) for n in (1, 2, 3)])),
    st.sets(st.sampled_from([ConsumerId(n) for n in (1, 2, 3)])),
    st.sets(st.sampled_from(NAMES)).map(frozenset),
    st.booleans(),
)
def test_whatever_the_group_looks_like(view, desired, wanted, suspected, strict):
    found = reconcile(view, desired, wanted, suspected, strict=strict)
    newest = {known.member for known in view.newest().values()}
    last = {i: known.assignment.message for i, known in view.members.items() if known.assignment}
    written = {**last, **{o.member.incarnation: o for o in found.assignments}}
    owners = [p for i, o in written.items() for p in o.owned]
    assert len(owners) == len(set(owners))
    for incarnation, known in view.members.items():
        after = written.get(incarnation)
        if after is None:
            assert not known.possibly_owned
            continue
        assert after.owned | after.revoking >= known.possibly_owned
        assert not after.owned & after.revoking
        assert not after.pending & after.owned
        assert after.owned <= desired.keys()
        assert not after.owned or (known.member in newest and not known.ended and not known.retiring)
        assert after.retire or not known.retiring
        if after.retire and not known.retiring:
            assert not known.possibly_owned
            assert known.member.consumer not in wanted
        for entered in after.owned - (last[incarnation].owned if incarnation in last else tps("")):
            holders = {i for i, m in view.members.items() if i != incarnation and entered in m.possibly_owned}
            assert holders <= (frozenset() if strict else suspected)
    view = carried_out(view, found, 100)
    again = reconcile(view, desired, wanted, suspected, strict=strict)
    if all(known.report for known in view.members.values()):
        assert all(o.retire for o in again.assignments), "only to end is said in a second step"
    # Of two that were never heard of the one with the later Assignment counts as newer: one more step, but no more
    for step in (2, 3):
        view = carried_out(view, again, 100 * step)
        again = reconcile(view, desired, wanted, suspected, strict=strict)
    assert not again, "it comes to rest"
