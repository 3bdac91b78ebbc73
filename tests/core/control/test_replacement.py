"""Who gives way to another version, and which numbers spares get."""

import pytest

from kgs_core.control.replacement import Replacement, plan_replacement
from kgs_core.control.spares import Numbers, choose_spares
from kgs_core.control.view import GroupView
from kgs_core.model import TopicPartition
from kgs_core.protocol import Incarnation, Member, Phase, Process, Received, Report, Target, Wanted

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def incarnation(consumer):
    return Member(consumer, Incarnation(f"i{consumer}"))


def view(wanted="2", **versions):
    """`c1="1"` is consumer 1 with version 1."""
    records = [Received(Wanted(wanted, "a", "somebody", 0), 0, 0)]
    for offset, (name, version) in enumerate(versions.items()):
        member = incarnation(int(name[1:]))
        process = Process("host", "boot", offset, 1)
        report = Report(
            member, 1, Phase.READING, 0.0, None, process, None, frozenset(), version=version, config_hash="a"
        )
        records.append(Received(report, offset, 0))
    return GroupView().take_all(records, 0.0)


def target(assignment, spares=(), known=(1, 2, 3, 4)):
    members = tuple(incarnation(c) for c in known)
    return Target("mwf", assignment, spares, dict.fromkeys(assignment, 50.0), 100.0, 0.0, "", members, (), 0)


def numbers(*joined, standing=(), barred=(), highest=63):
    return Numbers(standing, joined, barred, highest)


def plan(seen, meant, *joined, spares=1, is_settled=False):
    found = numbers(*joined, standing=meant.spares)
    return plan_replacement(seen, meant, spares, found, is_settled=is_settled)


def test_nobody_is_replaced_who_is_as_wanted():
    assert plan(view(c1="2", c2="2"), target({A: 1}, (2,)), 1, 2) is None


def test_nobody_is_replaced_when_nobody_wants_a_version():
    assert plan(GroupView(), target({A: 1}, (2,)), 1, 2) is None


def test_the_lowest_outdated_consumer_hands_over_to_a_spare():
    """Its number stays taken until its process has ended, so the new spare gets another one."""
    assert plan(view(c1="1", c2="1", c3="2"), target({A: 1, B: 2}, (3,)), 1, 2, 3) == Replacement(
        {A: 3, B: 2}, (4,), "replacement: consumer 1 is outdated, spare 3 takes its partitions"
    )


def test_an_outdated_spare_goes_first():
    assert plan(view(c1="1", c2="1"), target({A: 1}, (2,)), 1, 2) == Replacement(
        {A: 1}, (3,), "replacement: spare 2 is outdated"
    )


def test_a_spare_that_was_started_for_this_very_target_is_given_time():
    """Else, while only the wrong version can be started, spares would follow each other without end."""
    seen, meant = view(c1="1", c2="1"), target({A: 1}, (2,), known=(1,))
    assert plan(seen, meant, 1, 2) is None
    assert plan(seen, meant, 1, 2, is_settled=True).spares == (3,)


def test_a_configuration_counts_like_a_version():
    seen = view(wanted="1", c1="1", c2="1").take(Received(Wanted("1", "b", "somebody", 0), 1, 0), 0.0)
    assert plan(seen, target({A: 1}, (2,)), 1, 2).spares == (3,)


def test_without_a_spare_there_is_one_more_for_a_while():
    assert plan(view(c1="1"), target({A: 1}), 1, spares=0) == Replacement(
        {A: 1}, (2,), "replacement: consumer 1 is outdated, and there is no spare: one more for a while"
    )


@pytest.mark.parametrize(("second", "spares"), [("1", (4,)), ("2", ())], ids=["more to come", "the last"])
def test_the_one_more_goes_with_the_last_that_is_replaced(second, spares):
    found = plan(view(c1="1", c2=second, c3="2"), target({A: 1, B: 2}, (3,)), 1, 2, 3, spares=0)
    assert found.spares == spares


def test_where_every_number_is_taken_nobody_is_replaced():
    found = numbers(1, standing=(), highest=1)
    assert plan_replacement(view(c1="1"), target({A: 1}), 0, found, is_settled=True) is None


@pytest.mark.parametrize(
    ("used", "count", "given", "expected"),
    [
        ((1,), 1, numbers(1), (2,)),
        ((1,), 1, numbers(1, 4), (4,)),
        ((1,), 1, numbers(1, 3, 4, standing=(4,)), (4,)),
        ((1,), 1, numbers(1, standing=(5,)), (5,)),
        ((1,), 1, numbers(1, 3, standing=(5,)), (3,)),
        ((1,), 2, numbers(1, standing=(2,), barred=(2, 3)), (4, 5)),
        ((1, 2), 2, numbers(1, 2, highest=3), (3,)),
        ((1,), 0, numbers(1, 2, standing=(2,)), ()),
    ],
    ids=[
        "the lowest free number",
        "one that has joined",
        "a spare before one that a change has emptied",
        "one that is being started",
        "one that has joined before one that is being started",
        "no barred number",
        "no number without a queue",
        "none at all",
    ],
)
def test_spares_get_the_numbers_that_cost_least(used, count, given, expected):
    assert choose_spares(used, count, given) == expected
