"""Rules 1 to 6 and 9 explored to the end at small scope, and that each of them is needed.

Larger scopes take minutes and hold, too: a swap of two partitions with a crash (6,679 states) or a twin (8,966), a move
there and back with a crash (16,677), a move with a silence and a crash (18,837), with a twin and a crash (132,141), a
move away from a consumer that is then retired with a crash (18,704) or a twin (47,220).
"""

from dataclasses import replace
from random import Random

import pytest

from kgs_core.group.view import reconcile as control
from kgs_core.group.view.events import Write
from kgs_core.group.view.member_view import MemberView
from kgs_core.group.view.reconcile import reconcile
from tests.core.group.view.exploration import explore
from tests.core.group.view.plain_reconcile import both
from tests.core.group.view.small_scope import NOTHING, P, Q, Scope, first_step, steps
from tests.world.group_history import GroupHistory

MOVE = ({P: 1}, {P: 2})
BACK = ({P: 1}, {P: 2}, {P: 1})
SWAP = ({P: 1, Q: 2}, {P: 2, Q: 1})
HELD = {
    "another controller takes over a swap": Scope(SWAP, successors=1, late_reports=True),
    "there and back": Scope(BACK),
    "one is no longer wanted": Scope(MOVE, spares=False, late_reports=True),
    "a crash": Scope(MOVE, crashes=1),
    "a second process of one consumer": Scope(MOVE, twins=1),
    "a silence that frees nothing": Scope(SWAP, silences=1),
}


@pytest.mark.parametrize("name", HELD)
def test_no_partition_has_two_owners_and_the_group_comes_to_rest_as_planned(name):
    found = explore(replace(HELD[name], reconcile=both))
    assert found.states > 300
    assert found.wrong == ()
    assert found.stuck == ()


def test_after_a_silence_the_stale_owner_lets_go():
    """Two owners are right here: by default suspicion frees a partition. It must end, though."""
    found = explore(Scope(MOVE, silences=1, strict=False))
    assert found.wrong
    assert all("write in silence" in way for way in found.wrong)
    assert found.stuck == ()


def _without_revoking(view, *arguments, **keywords):
    changes = reconcile(view, *arguments, **keywords)
    stripped = (replace(assignment, revoking=NOTHING) for assignment in changes.assignments)
    return Write(None, tuple(o for o in stripped if _last(view, o.member) != o), changes.tombstones)


def _last(view, member):
    assignment = view.members[member.incarnation].assignment
    return assignment and assignment.message


def _per_consumer(view, *arguments, **keywords):
    newest = {member.member.incarnation: member for member in view.newest().values()}
    return reconcile(replace(view, members=newest), *arguments, **keywords)


def _older_left_alone(view, *arguments, **keywords):
    changes = reconcile(view, *arguments, **keywords)
    newest = {member.member for member in view.newest().values()}
    return Write(None, tuple(o for o in changes.assignments if o.member in newest), changes.tombstones)


def _report_alone(member):
    if member.report is not None and member.report.applied is not None:
        return member.report.owned
    return member.assignment.message.owned | member.assignment.message.revoking if member.assignment else NOTHING


DOUBLED = {
    "a report hides later Assignments": (Scope(BACK), (MemberView, "possibly_owned", property(_report_alone))),
    "no revoking": (Scope(MOVE, reconcile=_without_revoking), None),
    "start before stop": (Scope(MOVE), (control._Placing, "_is_free", lambda *_: True)),
    "no fencing": (Scope(BACK, successors=1, fencing=False), None),
    "report before acting": (Scope(MOVE, reports_first=True, late_reports=True), None),
    "Assignments of others are applied": (Scope(MOVE, twins=1, takes_others_assignments=True), None),
    "per consumer instead of per incarnation": (Scope(MOVE, twins=1, reconcile=_per_consumer), None),
    "silence frees what is held": (Scope(MOVE, silences=1, strict=False), None),
    "retired before it is empty": (
        Scope(MOVE, spares=False),
        (control._Placing, "is_empty_for_good", lambda placing, view: placing._is_newest(view)),
    ),
}


@pytest.mark.parametrize("name", DOUBLED)
def test_each_rule_is_needed_and_the_checker_sees_it_broken(monkeypatch, name):
    """What is wrong with a report can be seen of the processes only, everything else of the topics alone."""
    scope, mutation = DOUBLED[name]
    if mutation is not None:
        monkeypatch.setattr(*mutation)
    found = explore(scope, first_wrong=True)
    assert found.wrong
    in_topics, in_processes = looked_at(found.way)
    assert in_processes if scope.reports_first else in_topics


def looked_at(way):
    """What the checker, which does not take silence for an excuse, says of a course of events."""
    history = GroupHistory(strict=True)
    in_topics, in_processes = [], []
    for step in way:
        in_topics += history.take(step.events)
        in_processes += history.check_owners(step.state.owners())
    return in_topics, in_processes


def test_an_older_incarnation_that_is_not_emptied_keeps_its_partitions_for_ever():
    found = explore(Scope(MOVE, twins=1, reconcile=_older_left_alone))
    assert found.wrong == ()
    assert found.stuck


EVERYTHING = Scope(
    (*SWAP, {P: 1, Q: 1}, {P: 2, Q: 2}), crashes=2, twins=1, successors=1, silences=2, spares=False, late_reports=True
)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_the_checker_finds_nothing_where_the_rules_hold(seed, strict):
    scope = replace(EVERYTHING, strict=strict, reconcile=both)
    random, history = Random(seed), GroupHistory(strict=strict)
    possible, problems = [first_step(scope)], []
    for _ in range(120):
        step = random.choice(possible)
        problems += [*history.take(step.events), *history.check_owners(step.state.owners())]
        possible = list(steps(scope, step.state))
        if not possible:
            break
    assert problems == []
