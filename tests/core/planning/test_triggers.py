"""The Sentinel: each exit condition, and when it asks for a run."""

from dataclasses import replace

import pytest

from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load
from kgs_core.planning.triggers import ExitCondition, Reason, RunDecision, Watched, decide, exit_conditions
from tests.cases import cases

GROUP = {1: "ab", 2: "c"}
STEADY = {"a": 50, "b": 40, "c": 60}
"""Neither of the two could read all."""
QUIET, LIGHT, GROWN = ({"a": 10, "b": 10, "c": 10}, {"a": 30, "b": 30, "c": 30}, {"a": 80, "b": 60, "c": 30})
WAITED = {"since_packing_s": 300.0}


@pytest.fixture
def calm(assigned):
    """Two consumers that read what they shall."""
    return Watched(target=assigned(GROUP), current=assigned(GROUP), joined=frozenset({1, 2}))


@pytest.fixture
def decided(speeds_of, calm, packing, new_random, assigned, tp):
    """What is decided at these speeds in the calm group, but for what is named; then settings."""

    def decide_on(speeds, watched=None, settings=None, *, unknown=""):
        given = {"current": GROUP, "target": GROUP, **(watched or {})}
        seen = replace(calm, **given | {name: assigned(given[name]) for name in ("current", "target")})
        load = Load(speeds_of(**speeds), unknown=frozenset(map(tp, unknown)))
        return decide(load, seen, packing(**(settings or {})), new_random)

    return decide_on


@pytest.fixture
def zoned(speeds_of, calm, packing, new_random, assigned, tp):
    """What is decided at a weight, where partitions are led in these zones."""

    def decide_on(weight, watched=None, speeds=None, **leaders):
        given = {**CROSSED, "current": GROUP, "target": GROUP, **(watched or {})}
        seen = replace(calm, **given | {name: assigned(given[name]) for name in ("current", "target")})
        load = Load(
            speeds_of(**speeds or {"a": 50, "b": 40, "c": 50}), zones={tp(name): zone for name, zone in leaders.items()}
        )
        return decide(load, seen, packing(cross_zone_weight=weight), new_random)

    return decide_on


def reasons(decision):
    return [condition.reason for condition in decision.conditions]


ALONE = {"current": {1: "ab"}, "joined": frozenset({1})}


@cases(
    ("arguments", "holding"),
    {
        "nothing happened": ((STEADY,), []),
        "above what is packed, 100, and not above what a consumer can read, 120": (({"a": 60, "b": 50, "c": 30},), []),
        "a partition too fast for any consumer does not keep the group moving": (({"a": 50, "b": 40, "c": 500},), []),
        "a plan that takes away less than a tenth of what is too much relieves nobody": (
            ({"a": 200, "b": 190, "c": 300}, {}, {"max_consumers": 2}),
            [Reason.OVERLOADED],
        ),
        "another plan relieves no more than the target will once consumer 4 has joined": (
            ({"a": 80, "b": 60, "c": 60}, {"target": {1: "a", 2: "c", 4: "b"}}),
            [Reason.OVERLOADED],
        ),
        "a partition is not yet where the target has it": ((STEADY, {"current": {1: "a", 2: "bc"}}), []),
        "the plan is the target, and cannot be handed over yet": ((STEADY, ALONE), [Reason.UNOWNED]),
        "no spare, no room elsewhere: who is lost may be started again under its number": (
            (STEADY, {**ALONE, "lost": frozenset({2})}),
            [Reason.UNOWNED, Reason.LOST],
        ),
        "a plan that only moves is not better": (({"a": 80, "b": 40, "c": 30}, WAITED), [Reason.TIMEOUT]),
        "what is saved must be worth what is moved": ((LIGHT, WAITED, {"consumer_weight": 0.29}), [Reason.TIMEOUT]),
        "before the time nobody looks": ((QUIET, {"since_packing_s": 299.9}), []),
    },
)
def test_nothing_is_done(decided, arguments, holding):
    found = decided(*arguments)
    assert found.plan is None
    assert (reasons(found), found.held_back) == (holding, None)


CROSSED = {**WAITED, "zones": {1: "x", 2: "y"}}
"""Consumer 1 reads a and b, consumer 2 reads c; c is led where 1 is, a where 2 is."""


@pytest.mark.parametrize(
    ("weight", "target"), [(0.0, None), (1.0, None), (1.1, {1: "bc", 2: "a"}), (8.0, {1: "bc", 2: "a"})]
)
def test_reading_across_zones_is_ended_where_that_is_worth_its_moves(weight, target, zoned, assigned):
    found = zoned(weight, a="y", b="x", c="x")
    assert found.plan is None if target is None else found.plan.target == assigned(target)
    if target is not None:  # and when that is done, nothing more is
        assert zoned(weight, {"current": target, "target": target}, a="y", b="x", c="x").plan is None
        assert (found.plan.cross_zone_bytes_per_s, found.plan.rscore) == (0.0, 1.0)


def test_what_is_forced_moves_nothing_else_for_its_zone(zoned):
    forced, speeds = {"since_packing_s": 0.0}, {"a": 80, "b": 60, "c": 90}
    found = zoned(8.0, forced, speeds, a="y", b="x", c="x")
    assert reasons(found) == [Reason.OVERLOADED]
    assert found.plan.target == zoned(0.0, forced, speeds, a="y", b="x", c="x").plan.target
    assert zoned(8.0, {}, speeds, a="y", b="x", c="x").plan.target != found.plan.target


def test_zones_that_are_not_known_move_nothing(zoned):
    assert zoned(8.0).plan is None
    assert zoned(8.0, {"zones": {}}, a="y", b="x", c="x").plan is None


def test_nothing_is_given_up_on_missing_measurements(decided):
    assert decided(QUIET, WAITED, unknown="a") == RunDecision()


@pytest.mark.parametrize(
    "case",
    [
        (GROWN, {}, [Reason.OVERLOADED], {1: "a", 2: "bc"}, 0.6),
        (GROWN, {"target": {1: "a", 2: "c", 4: "b"}}, [Reason.OVERLOADED], {1: "a", 2: "bc"}, 0.6),
        ({"a": 80, "b": 60, "c": 60, "d": 90}, {"target": {1: "ad", 2: "c", 4: "b"}, "current": {1: "abd", 2: "c"}},
         [Reason.OVERLOADED], {1: "d", 2: "c", 3: "a", 4: "b"}, 1.4),
        (STEADY, {"current": {1: "ab"}}, [Reason.UNOWNED], GROUP, 0),
        (STEADY, {"current": {1: "ab"}, "joined": frozenset({1, 5}), "lost": frozenset({2})},
         [Reason.UNOWNED, Reason.LOST], {1: "ab", 5: "c"}, 0.6),
        (STEADY, {"current": {1: "ab"}, "restarted": frozenset({2})}, [Reason.UNOWNED, Reason.RESTARTED], GROUP, 0),
        (STEADY, {**ALONE, "failing": frozenset({2})}, [Reason.UNOWNED, Reason.FAILING], {1: "ab", 3: "c"}, 0.6),
        ({"a": 50, "c": 60, "d": 10}, {}, [Reason.UNOWNED, Reason.CHANGED], {1: "ad", 2: "c"}, 0),
        (QUIET, WAITED, [Reason.TIMEOUT], {1: "abc"}, 0.1),
        ({"a": 90, "b": 40, "c": 60}, {**WAITED, "current": {1: "a", 2: "bc"}}, [Reason.TIMEOUT], {1: "a", 2: "bc"}, 0),
    ],
    ids=[
        "a consumer above its capacity is relieved",
        "a plan that waits for nobody is better than a target that does",
        "the target that stands does not suffice any more",
        "a partition without owner is handed to its consumer once that has joined",
        "what a lost consumer read goes to a joined spare: that a death forces it makes it no cheaper",
        "a restarted consumer is given its partitions again",
        "a failing consumer's number is quarantined",
        "a new partition and a vanished one",
        "fewer consumers are better",
        "as many with less to move are better: the target would still move b",
    ],
)  # fmt: skip
def test_a_run_is_asked_for(decided, assigned, case):
    speeds, watched, why, target, rscore = case
    found = decided(speeds, watched)
    assert found.plan is not None
    assert (reasons(found), found.plan.target, found.plan.rscore) == (why, assigned(target), rscore)


def test_a_condition_names_whom_it_concerns(decided, tp):
    assert decided(GROWN).conditions == (ExitCondition(Reason.OVERLOADED, (1,)),)
    assert decided({"a": 50, "c": 60, "d": 10}).conditions == (
        ExitCondition(Reason.UNOWNED, partitions=(tp("d"),)),
        ExitCondition(Reason.CHANGED, partitions=(tp("b"), tp("d"))),
    )


@pytest.mark.parametrize("group", [{1: "abc"}, GROUP])
def test_fewer_consumers_than_are_asked_for_are_made_more(decided, assigned, group):
    """As after a start at which one had joined before the others, or where the setting has become greater."""
    watched = {**WAITED, "target": group, "current": group}
    wanted = len(group) + 1
    found = decided(QUIET, watched, {"min_consumers": wanted})
    assert reasons(found) == [Reason.TIMEOUT]
    assert len({*found.plan.target.values()}) == wanted
    watched["target"] = watched["current"] = {n: "abc"[n - 1] for n in (1, 2, 3)}
    assert decided(QUIET, watched, {"min_consumers": 9}).plan is None  # there are no more partitions


@pytest.mark.parametrize("consumer_weight", [0.3, "fewest"])
def test_one_consumer_less_for_what_it_is_worth(decided, consumer_weight):
    found = decided(LIGHT, WAITED, {"consumer_weight": consumer_weight})
    assert (found.plan.consumers, found.plan.rscore) == (1, 0.3)
    assert decided(GROWN, WAITED, {"consumer_weight": 0.01}).plan is not None, "overload is no question of worth"


def test_conditions_come_in_one_order_and_long_lists_are_cut(speeds_of, calm, packing):
    many = tuple(TopicPartition("t", n) for n in range(7))
    assert str(ExitCondition(Reason.UNOWNED, partitions=many)) == (
        "partition without owner: t:0, t:1, t:2, t:3, t:4, 2 more"
    )
    assert str(ExitCondition(Reason.LOST, (2, 5))) == "consumer lost: 2, 5"
    assert str(ExitCondition(Reason.TIMEOUT)) == "looking for a better packing"
    worst = replace(
        calm, current={}, lost=frozenset({1}), restarted=frozenset({2}), failing=frozenset({2}), since_packing_s=1e6
    )
    load = Load(speeds_of(**STEADY))
    found = [condition.reason for condition in exit_conditions(load, worst, packing())]
    assert found == [Reason.UNOWNED, Reason.LOST, Reason.RESTARTED, Reason.FAILING], "no better packing while unread"
    calm_again = replace(worst, current=calm.current)
    assert [c.reason for c in exit_conditions(load, calm_again, packing())][-1] is Reason.TIMEOUT


@pytest.mark.parametrize("algorithm", ["mwf", "search", "keep"])
def test_noise_flips_between_no_two_targets_while_nobody_has_joined(decided, algorithm):
    """At the lower speeds a consumer less would do, at the higher ones that is too few by paper alone."""
    names, target, written = "abcdefghijkl", {1: "abcdefghijkl"}, 0
    for turn in range(20):
        speeds = dict.fromkeys(names, 25 if turn % 2 else 31)
        seen = {"current": {1: names}, "target": target, "joined": frozenset({1})}
        found = decided(speeds, seen, {"algorithm": algorithm})
        if found.plan is not None:
            written, target = written + 1, {}
            for partition, consumer in sorted(found.plan.target.items()):
                target[consumer] = target.get(consumer, "") + partition.topic
    assert written <= 2


@pytest.mark.parametrize("algorithm", ["mwf", "keep"])
def test_room_of_who_has_joined_is_used_while_another_does_not_come(decided, algorithm):
    """Consumer 1 is above its capacity; c and d wait for 3, and 2 has room by now."""
    speeds = {"a": 40, "b": 40, "c": 40, "d": 40, "e": 55}
    seen = {"current": {1: "abcd", 2: "e"}, "target": {1: "ab", 2: "e", 3: "cd"}, "joined": frozenset({1, 2})}
    found = decided(speeds, seen, {"algorithm": algorithm})
    assert reasons(found) == [Reason.OVERLOADED]
    assert [move.destination for move in found.plan.moves if move.destination == 2]
