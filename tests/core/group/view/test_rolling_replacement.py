"""Who gives way to another version, and which numbers spares get."""

from dataclasses import replace

import pytest

from kgs_core.group.protocol import (
    DesiredState,
    DesiredVersion,
    Incarnation,
    Member,
    MemberAssignment,
    Phase,
    Received,
    Report,
    RunState,
    Target,
)
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.rolling_replacement import (
    Replacement,
    fulfilled_ms,
    next_hand_over,
    plan_replacement,
    replacement_wait,
)
from kgs_core.model import TopicPartition
from kgs_core.planning.group import Group
from kgs_core.planning.placement import Readers
from tests.cases import cases
from tests.processes import a_process

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def incarnation(consumer):
    return Member(consumer, Incarnation(f"i{consumer}"))


def view(wanted="2", **versions):
    """`c1="1"` is consumer 1 with version 1."""
    records = [Received(DesiredVersion(wanted, "a", "somebody", 0), 0, 0)]
    for offset, (name, version) in enumerate(versions.items()):
        records.append(Received(report(int(name[1:]), version), offset, 0))
    return GroupView().take_all(records, 0.0)


def report(consumer, version):
    member, process = incarnation(consumer), a_process(consumer)
    return Report(member, 1, Phase.READING, 0.0, None, process, None, frozenset(), version=version, config_hash="a")


def asked(at_ms, offset):
    """People ask for version 2."""
    return Received(DesiredVersion("2", "a", "me", 0), offset, at_ms)


def target(assignment, spares=(), known=(1, 2, 3, 4)):
    members = tuple(incarnation(c) for c in known)
    return Target("mwf", assignment, spares, dict.fromkeys(assignment, 50.0), 100.0, 0.0, "", members, (), 0)


def group(*joined, standing=(), unusable=()):
    readers = Readers(joined=frozenset(joined))
    return Group(readers=readers, standing=frozenset(standing), quarantined=frozenset(unusable))


def plan(seen, meant, *joined, spares=1):
    return plan_replacement(seen, meant, spares, group(*joined, standing=meant.spares))


@cases(
    ("seen", "meant", "joined", "spares", "found"),
    {
        "all are as wanted": (view(c1="2", c2="2"), target({A: 1}, (2,)), (1, 2), 1, None),
        "nobody wants a version": (GroupView(), target({A: 1}, (2,)), (1, 2), 1, None),
        "the lowest outdated one hands over to a spare, and its number stays taken until its process has ended": (
            view(c1="1", c2="1", c3="2"),
            target({A: 1, B: 2}, (3,)),
            (1, 2, 3),
            1,
            Replacement({A: 3, B: 2}, (4,), "replacement: consumer 1 is outdated, spare 3 takes its partitions"),
        ),
        "an outdated spare goes first": (
            view(c1="1", c2="1"),
            target({A: 1}, (2,)),
            (1, 2),
            1,
            Replacement({A: 1}, (3,), "replacement: spare 2 is outdated"),
        ),
        "without a spare there is one more for a while": (
            view(c1="1"),
            target({A: 1}),
            (1,),
            0,
            Replacement(
                {A: 1}, (2,), "replacement: consumer 1 is outdated, and there is no spare: one more for a while"
            ),
        ),
    },
)
def test_who_gives_way_to_whom(seen, meant, joined, spares, found):
    assert plan(seen, meant, *joined, spares=spares) == found


def test_a_start_that_would_come_out_the_same_is_not_repeated_before_people_ask_again():
    """Else, while only the wrong version can be started, spares would follow each other without end."""
    meant = target({A: 1}, (2,))
    seen = view(c1="1").take(Received(report(2, "1"), 1, 1000), 0.0)
    assert plan(seen, meant, 1, 2) is None
    assert plan(seen.take(asked(999, offset=1), 0.0), meant, 1, 2) is None
    assert plan(seen.take(asked(1000, offset=1), 0.0), meant, 1, 2).spares == (3,)


@pytest.mark.parametrize(
    ("members", "silent", "expected"),
    [
        ({"c1": "2", "c2": "2"}, "", 7),
        ({"c1": "2", "c2": "1"}, "", None),
        ({"c1": "1", "c2": "2"}, "i1", 7),
        ({}, "", 7),
    ],
    ids=["all are replaced", "one is not", "one that is silent keeps nothing open", "nobody is left"],
)
def test_a_request_is_fulfilled_when_nobody_is_left_who_differs(members, silent, expected):
    seen = view(**members).take(asked(7, offset=1), 0.0)
    assert fulfilled_ms(seen, frozenset(silent.split())) == expected


def test_nobody_is_replaced_for_a_request_that_is_fulfilled():
    meant = replace(target({A: 1}, (2,)), fulfilled_ms=7)
    seen = view().take(asked(7, offset=1), 0.0).take(Received(meant, 0, 8), 0.0)
    for consumer in (1, 2):
        seen = seen.take(Received(report(consumer, "1"), consumer, 9), 0.0)
    assert plan(seen, meant, 1, 2) is None
    assert replacement_wait(seen, meant, frozenset()) is None
    assert fulfilled_ms(seen, frozenset()) == 7
    again = seen.take(asked(10, offset=2), 0.0)
    assert plan(again, meant, 1, 2).spares == (3,)
    assert fulfilled_ms(again, frozenset()) == 7


def test_a_configuration_counts_like_a_version():
    seen = view(wanted="1", c1="1", c2="1").take(Received(DesiredVersion("1", "b", "somebody", 0), 1, 0), 0.0)
    assert plan(seen, target({A: 1}, (2,)), 1, 2).spares == (3,)


def says(seen, consumer, **changes):
    """The view, when a consumer has said more of itself."""
    report = seen.newest()[consumer].report
    return seen.take(Received(replace(report, sequence=report.sequence + 1, **changes), 50 + report.sequence, 0), 0.0)


def assigned_by_plan(seen, meant):
    """The view of a group that is as `meant` has it."""
    for consumer in meant.consumers:
        owned = frozenset(p for p, c in meant.assignment.items() if c == consumer)
        seen = seen.take(Received(MemberAssignment(incarnation(consumer), owned), consumer, 0), 0.0)
        seen = says(seen, consumer, owned=owned, applied=consumer)
    return seen


def test_a_spare_takes_over_only_when_it_has_opened_everything():
    meant = target({A: 1, B: 1}, (2,))
    seen = assigned_by_plan(view(c1="1", c2="2"), meant)
    assert next_hand_over(seen, meant, (1, 2)).partitions == {A, B}
    for ready in ((), (A,)):
        assert plan(says(seen, 2, ready=frozenset(ready)), meant, 1, 2) is None
    assert plan(says(seen, 2, ready=frozenset({A, B})), meant, 1, 2).assignment == {A: 2, B: 2}


def test_a_spare_of_a_version_that_cannot_say_what_it_has_opened_takes_over_at_once():
    meant = target({A: 1}, (2,))
    assert plan(says(assigned_by_plan(view(c1="1", c2="2"), meant), 2, ready=None), meant, 1, 2).assignment == {A: 2}


def test_a_replacement_that_cannot_go_on_says_what_cannot_be_opened_and_why():
    meant = target({A: 1, B: 1}, (2,))
    seen = assigned_by_plan(view(c1="1", c2="2"), meant)
    opening = replacement_wait(says(seen, 2, ready=frozenset({B})), meant, frozenset())
    assert str(opening) == "the replacement waits for spare 2 to open a:0 before consumer 1 ends"
    refused = says(seen, 2, ready=frozenset({B}), unready={A: "no\nrule\x1b[2J fits"})
    held = replacement_wait(refused, meant, frozenset())
    assert held.refused == {A: "no\nrule\x1b[2J fits"}
    assert str(held) == (
        "the replacement has stopped: it waits for spare 2 to open a:0 before consumer 1 ends, which it cannot: "
        "a:0: no rule\\x1b[2J fits"
    )


def test_one_reason_of_many_partitions_is_shown_once():
    many = {TopicPartition("t", n): 1 for n in range(12)}
    meant = target(many, (2,))
    seen = says(
        assigned_by_plan(view(c1="1", c2="2"), meant), 2, ready=frozenset(), unready=dict.fromkeys(many, "no rule")
    )
    assert str(replacement_wait(seen, meant, frozenset())).endswith("which it cannot: t:0-11: no rule")


def test_what_a_replacement_waits_for_has_a_name():
    meant = target({A: 1}, (2,), known=(1,))
    seen = assigned_by_plan(view(c1="1", c2="1"), meant)
    assert "spare 2 has version 1, configuration a" in str(replacement_wait(seen, meant, frozenset()))
    paused = seen.take(Received(DesiredState(RunState.PAUSED, "me", 0), 1, 0), 0.0)
    assert "`kgs resume`: the group is to be paused" in str(replacement_wait(paused, meant, frozenset()))
    alone = target({A: 1})
    assert "a spare to be started" in str(replacement_wait(assigned_by_plan(view(c1="1"), alone), alone, frozenset()))
    absent = replacement_wait(assigned_by_plan(view(c1="1", c2="2"), meant), target({A: 1}, (3,)), frozenset())
    assert str(absent) == "the replacement waits for consumers to join: 3"
    moving = replacement_wait(assigned_by_plan(view(c1="1", c2="2"), meant), target({A: 2}, (1,)), frozenset())
    assert str(moving) == "the replacement waits for the change under way: a:0 pending"
    assert replacement_wait(assigned_by_plan(view(c1="2", c2="2"), meant), meant, frozenset()) is None


@pytest.mark.parametrize(("second", "spares"), [("1", (4,)), ("2", ())], ids=["more to come", "the last"])
def test_the_one_more_goes_with_the_last_that_is_replaced(second, spares):
    found = plan(view(c1="1", c2=second, c3="2"), target({A: 1, B: 2}, (3,)), 1, 2, 3, spares=0)
    assert found.spares == spares


@cases(
    ("used", "count", "given", "expected"),
    {
        "the lowest free number": ((1,), 1, group(1), (2,)),
        "one that has joined": ((1,), 1, group(1, 4), (4,)),
        "a spare before one that a change has emptied": ((1,), 1, group(1, 3, 4, standing=(4,)), (4,)),
        "one that is being started": ((1,), 1, group(1, standing=(5,)), (5,)),
        "one that has joined before one that is being started": ((1,), 1, group(1, 3, standing=(5,)), (3,)),
        "no unusable number": ((1,), 2, group(1, standing=(2,), unusable=(2, 3)), (4, 5)),
        "none at all": ((1,), 0, group(1, 2, standing=(2,)), ()),
    },
)
def test_spares_get_the_numbers_that_cost_least(used, count, given, expected):
    assert given.choose_spares(used, count) == expected
