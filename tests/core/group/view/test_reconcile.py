"""Each next Assignment: what looking at everything comes to, and nothing that must not be, whatever the group is."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.group.protocol import Phase
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.member_view import MemberView
from kgs_core.group.view.reconcile import converged, reconcile, waiting
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.planning.shares import shares_of
from tests.core.group.view.group_words import add, at, carried_out, gives, plan, report, settled, tps, view_of
from tests.core.group.view.plain_reconcile import both

LIMITS = settings(max_examples=60)
LETTERS = "pqrst"


def some(random):
    return "".join(letter for letter in LETTERS if random.random() < 0.4)


def any_view(random):
    """Up to three incarnations of four consumers, with whatever Assignments and reports."""
    view = GroupView()
    names = random.sample([f"{c}{i}" for c in range(1, 5) for i in "abc"], random.randint(0, 8))
    for offset, name in enumerate(names):
        owned = some(random)
        if random.random() < 0.8:
            phase = random.choice([Phase.READING, Phase.READING, Phase.READING, Phase.ENDED])
            applied = random.choice([None, 10, 20])
            view = view.take_all([at(offset, report(name, owned, applied, 1, phase))], 0.0)
        if random.random() < 0.8:
            given = random.choice([owned, some(random)])
            assignment = gives(name, given, some(random), some(random), retire=random.random() < 0.2)
            view = view.take_all([at(random.choice([5, 10, 20]), assignment)], 0.0)
    return view.bury([name for name in names if random.random() < 0.1])


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_view_it_comes_to_what_looking_at_everything_comes_to(seed):
    random = Random(seed)
    for _ in range(100):
        view = any_view(random)
        shares = {consumer: set() for consumer in range(1, 5)}
        for letter in some(random):
            shares[random.randint(1, 4)].add(letter)
        desired = plan(**{f"c{consumer}": share for consumer, share in shares.items()})
        suspected = frozenset(i for i in view.members if random.random() < 0.2)
        trials = {random.randint(1, 4): frozenset(plan(c1=some(random)))} if random.random() < 0.3 else None
        wanted = random.sample(range(1, 5), random.randint(0, 4))
        both(view, desired, wanted, suspected, strict=random.random() < 0.5, trials=trials)


def test_large_groups_are_handled_in_moderate_steps(monkeypatch):
    """All of 5,000 partitions change hands among 60 consumers: each set is asked for twice, not once a partition."""
    partitions = [TopicPartition(f"t{n // 100}", n % 100) for n in range(5000)]
    random = Random(0)
    desired = {p: ConsumerId(random.randint(1, 60)) for p in partitions}
    view = add(GroupView(), *(at(n, report(f"{n}a")) for n in range(1, 61)))
    view = add(view, *(at(9, o) for o in reconcile(view, desired, range(1, 61), frozenset(), strict=True).assignments))
    held = {o.member: o.owned for o in (m.assignment.message for m in view.members.values())}
    asked = []
    plain = MemberView.possibly_owned
    noting = property(lambda known: asked.append(known.member) or plain.fget(known))
    monkeypatch.setattr(MemberView, "possibly_owned", noting)
    moved = {p: ConsumerId(1 + consumer % 60) for p, consumer in desired.items()}
    found = reconcile(view, moved, range(1, 61), frozenset(), strict=True)
    assert {o.member: o.revoking for o in found.assignments} == held
    assert len(asked) <= 2 * 60


def test_what_stands_still_counts_as_read():
    """A partition that nobody can ever read must not keep every consumer alive that nobody needs."""
    stopped = dict.fromkeys(tps("q"), "Kafka has no such topic or partition")
    still = replace(report("2a", "q", applied=10, sequence=1), stopped=stopped)
    view = add(settled(c1="p", c2="q", c3=""), at(20, still))
    found = reconcile(view, plan(c1="p", c2="q"), [1, 2], frozenset(), strict=True)
    assert list(found.assignments) == [gives("3a", retire=True)]


def test_shares_are_those_of_the_assignment_asked_for():
    first, second = plan(c1="pq", c2="r"), plan(c1="p")
    for _ in range(2):
        assert {c: len(share) for c, share in shares_of(first).items()} == {1: 2, 2: 1}
        assert {c: len(share) for c, share in shares_of(second).items()} == {1: 1}


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

    def test_nobody_is_waited_for_where_all_is_reported(self):
        view = view_of(at(1, report("1a", "pq")))
        assert self.said(view, plan(c1="pq")) == []
        assert self.said(view, plan(c1="pqr")) == ["r:0 for consumer 1: 1@1a has not reported it yet"]

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
