"""Unread partitions go to who has joined: idle consumers take whole shares, the others what they have room for."""

from dataclasses import replace

import pytest

from kgs_core.model import ConsumerId
from kgs_core.planning.group import Group
from kgs_core.planning.load import Load
from kgs_core.planning.placement import Readers, pinned_partitions, to_joined
from kgs_core.planning.plan import make_plan
from kgs_core.planning.triggers import Watched
from tests.cases import cases

PLANNED = {1: "ab", 2: "c", 3: "d"}
SPEEDS = {"a": 40, "b": 30, "c": 60, "d": 20}


@pytest.fixture
def placed(assigned, speeds_of):
    """Who reads what by the result, as `{1: "ab"}`."""

    def place(read, joined, planned=PLANNED, *, knows_speeds=True, **speeds):
        here = assigned(planned)
        readers = Readers(here, frozenset(p for p in here if p.topic in read), frozenset(map(ConsumerId, joined)))
        found = to_joined(here, readers, speeds_of(**(SPEEDS | speeds)) if knows_speeds else None, lambda _: 100.0)
        assert found.keys() == here.keys()
        return {c: "".join(sorted(p.topic for p, owner in found.items() if owner == c)) for c in set(found.values())}

    return place


class TestToJoined:
    @cases(
        ("read", "joined", "expected"),
        {
            "all is read": ("abcd", {1, 2, 3, 4}, PLANNED),
            "what is read stays where it is planned": ("abcd", {4}, PLANNED),
            "an idle one takes a whole share": ("cd", {2, 3, 4}, {4: "ab", 2: "c", 3: "d"}),
            "the greatest need first; what is left where it fits": ("d", {3, 4}, {4: "ab", 3: "cd"}),
            "one idle consumer for all": ("", {4}, {4: "abd", 2: "c"}),
            "two": ("", {4, 5}, {4: "abd", 5: "c"}),
            "idle ones left over": ("", {4, 5, 6, 7}, {4: "ab", 5: "c", 6: "d"}),
            "into room, each where it fits most tightly": ("cd", {2, 3}, {2: "ac", 3: "bd"}),
            "from fast to slow, and no more than fits": ("d", {3}, {3: "cd", 1: "ab"}),
            "nobody has joined": ("", set(), PLANNED),
            "on its way to who has joined": ("", {1, 2, 3}, PLANNED),
        },
    )
    def test_what_nobody_reads(self, placed, read, joined, expected):
        assert placed(read, joined) == expected

    def test_a_share_is_taken_whole_though_a_part_is_still_read_elsewhere(self, placed):
        """a is on its way from somebody to 1, who is not there: it goes on to where b goes."""
        assert placed("acd", {2, 3, 4}) == {4: "ab", 2: "c", 3: "d"}

    def test_without_speeds_only_whole_shares_change_hands(self, placed):
        assert placed("d", {3}, knows_speeds=False) == PLANNED
        assert placed("d", {3, 4}, knows_speeds=False) == {4: "ab", 2: "c", 3: "d"}

    def test_a_partition_faster_than_any_consumer_goes_to_an_idle_one(self, placed):
        assert placed("abd", {1, 3, 4}, c=500) == {1: "ab", 4: "c", 3: "d"}
        assert placed("abd", {1, 3}, c=500) == PLANNED


def test_of_an_overloaded_consumer_the_fastest_partition_stays(assigned, speeds_of):
    current = assigned({1: "ab", 2: "c"})
    assert pinned_partitions(current, speeds_of(**SPEEDS), lambda _: 100.0) == current.keys()
    speeds = speeds_of(a=50, b=80, c=60)
    assert pinned_partitions(current, speeds, lambda _: 120.0) == assigned({1: "b", 2: "c"}).keys()


class TestPlan:
    """18 partitions, 7 of them unread, one consumer that is not there: the finding."""

    @pytest.fixture
    def watched(self, assigned):
        names = [f"{n:02}" for n in range(18)]
        target = assigned({1: names[:7], 2: names[7:]})
        current = {p: c for p, c in target.items() if c == 2}
        return Watched(target=target, current=current, joined=frozenset({ConsumerId(2), ConsumerId(3)}))

    @pytest.mark.parametrize("algorithm", ["mwf", "bfd", "nf", "keep", "search"])
    def test_nothing_goes_to_who_is_not_there_while_others_could_read(self, watched, packing, new_random, algorithm):
        load = Load(dict.fromkeys(watched.target, 5.0))
        plan = make_plan(load, watched.group(), packing(algorithm=algorithm), new_random)
        assert set(plan.target.values()) == {2, 3}
        assert all(plan.target[p] == 2 for p in watched.current), "no better packing is looked for meanwhile"
        assert plan.rscore == 7 * 5 / 100
        assert 3 not in plan.retire

    @pytest.mark.parametrize("algorithm", ["mwf", "bfd", "nf", "keep", "search"])
    def test_a_new_partition_goes_to_who_has_joined(self, watched, packing, new_random, assigned, algorithm):
        """1 has room, and is being started."""
        waiting = replace(watched, joined=frozenset({ConsumerId(2)}), current=watched.current)
        load = Load({**dict.fromkeys(watched.target, 8.0), **dict.fromkeys(assigned({2: ["new"]}), 3.0)})
        plan = make_plan(load, waiting.group(), packing(algorithm=algorithm), new_random)
        assert [plan.target[p] for p in assigned({2: ["new"]})] == [2]

    def test_who_is_lost_keeps_its_share_where_nobody_has_room(self, assigned, speeds_of, packing, new_random):
        """It is started again under its number; nothing is moved for nothing."""
        readers = Readers(assigned({1: "a", 2: "b"}), assigned({2: "b"}).keys(), frozenset({ConsumerId(2)}))
        group = Group(assigned({2: "b"}), readers=readers)
        plan = make_plan(Load(speeds_of(a=60, b=60)), group, packing(), new_random)
        assert (plan.target, plan.rscore) == (assigned({1: "a", 2: "b"}), 0.0)
