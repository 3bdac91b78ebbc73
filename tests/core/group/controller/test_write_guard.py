"""The last look before a write: it lets pass whatever a sound controller writes, and stops what would do harm."""

from dataclasses import replace

import pytest

from kgs_core.group.controller import desired_state
from kgs_core.group.controller.write_guard import check_owners, check_write
from kgs_core.group.protocol import Incarnation, Member, MemberAssignment, Phase, Received, Report, Target
from kgs_core.group.view.events import Write
from kgs_core.group.view.group_view import GroupView
from kgs_core.model import ConsumerId, TopicPartition
from tests.core.group.controller.watched_group import WatchedGroup, options
from tests.processes import a_process
from tests.world import controllers

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
ONE, TWO = (Member(ConsumerId(n), Incarnation(f"life-{n}")) for n in (1, 2))
NOBODY = frozenset()


def report(member, *owned, applied=None, sequence=1, phase=Phase.READING):
    process = a_process()
    return Report(member, sequence, phase, 0.0, None, process, applied, frozenset(owned))


def gives(member, *owned, **more):
    return MemberAssignment(member, frozenset(owned), **more)


def target(assignment, speeds=None):
    return Target("mwf", assignment, (), speeds or dict.fromkeys(assignment, 1.0), 10.0, 0.0, "why", (), (), 0)


def view(*messages):
    """Offsets as given; everything is heard now."""
    return GroupView().take_all([Received(message, offset, 0) for offset, message in messages], 0.0)


OWNED_BY_ONE = view((0, gives(ONE, A)), (0, report(ONE, A, applied=0)), (0, report(TWO)))


def problems(view, *assignments, suspected=NOBODY, strict=False, target=None):
    return check_write(view, suspected, Write(target, assignments), strict=strict)


def test_stop_confirmed_start_passes():
    assert problems(OWNED_BY_ONE, gives(ONE, revoking=frozenset({A})), gives(TWO, pending=frozenset({A}))) == ()
    released = view((1, gives(ONE, revoking=frozenset({A}))), (1, report(ONE, applied=1)), (0, report(TWO)))
    assert problems(released, gives(ONE), gives(TWO, A)) == ()


def test_start_before_stop_is_found():
    found = problems(OWNED_BY_ONE, gives(ONE, revoking=frozenset({A})), gives(TWO, A))
    assert found == (f"S4 a:0: enters the Assignment of {TWO} while {ONE} may hold it",)


def test_what_was_assigned_and_not_confirmed_counts_as_held():
    assigned_by_plan = view((5, gives(ONE, A)), (0, report(ONE)), (0, report(TWO)))
    assert problems(assigned_by_plan, gives(TWO, A)) != ()


def test_two_in_one_write_are_found():
    free = view((0, report(ONE)), (0, report(TWO)))
    (line,) = problems(free, gives(ONE, A), gives(TWO, A))[-1:]
    assert line.startswith("S1 by Assignments: a:0")


def test_a_suspect_loses_what_another_gains_but_not_where_handover_is_strict():
    write = (gives(ONE, revoking=frozenset({A})), gives(TWO, A))
    suspected = frozenset({ONE.incarnation})
    assert problems(OWNED_BY_ONE, *write, suspected=suspected) == ()
    assert problems(OWNED_BY_ONE, *write, suspected=suspected, strict=True) != ()


def test_who_holds_something_is_not_told_to_end():
    assert problems(OWNED_BY_ONE, gives(ONE, revoking=frozenset({A}), retire=True))[0].startswith("S7")


def test_what_was_wrong_before_is_not_held_against_what_mends_it():
    doubled = view((0, gives(ONE, A)), (0, gives(TWO, A)), (0, report(ONE, A, applied=0)), (0, report(TWO, applied=0)))
    assert problems(doubled, gives(ONE, A, B)) == ()
    assert problems(doubled, gives(TWO, revoking=frozenset({A}))) == ()


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        (target({A: ConsumerId(1)}, {A: 1.0, B: 1.0}), "S6 b:0: has no consumer"),
        (target({A: ConsumerId(1), B: ConsumerId(1)}, {A: 1.0}), "S6 b:0: is not known, and has a consumer"),
        (target({A: ConsumerId(0)}), "S6 a:0: 0 is no consumer's number"),
    ],
)
def test_a_target_that_leaves_a_partition_out_is_found(bad, line):
    assert problems(GroupView(), target=bad) == (line,)


def test_a_target_above_capacity_endangers_nothing():
    assert problems(GroupView(), target=target({A: ConsumerId(1), B: ConsumerId(1)}, {A: 9.0, B: 9.0})) == ()


def test_two_that_say_to_own_the_same_are_found():
    both = view((0, report(ONE, A)), (0, report(TWO, A)))
    assert check_owners(both, NOBODY) == (f"a:0: owned by {ONE} and {TWO}",)
    assert check_owners(both, frozenset({ONE.incarnation})) == ()


def test_who_has_come_back_and_not_yet_read_what_it_lost_does_no_harm():
    back = view((1, gives(ONE)), (0, report(ONE, A, applied=0)), (0, gives(TWO, A)), (0, report(TWO, A, applied=0)))
    assert check_owners(back, NOBODY) == ()
    ended = view((0, report(ONE, A, phase=Phase.ENDED)), (0, report(TWO, A)))
    assert check_owners(ended, NOBODY) == ()


@pytest.fixture
def checked(monkeypatch):
    """Every write of every controller is looked at; the list gets what is wrong."""
    found = []
    plain = controllers.SimController._write

    def write(self, command):
        state = self.state
        found.extend(check_write(state.view, state.suspects(), command, strict=state.strict))
        return plain(self, command)

    monkeypatch.setattr(controllers.SimController, "_write", write)
    return found


def storm(seed):
    group = WatchedGroup.of(
        options(spares=1, suspect_after_s=5, start_timeout_s=8),
        seed,
        **dict.fromkeys("abcd", 50),
    )
    random = group.world.chance
    for _ in range(120):
        if random.strikes(0.15) and (living := group.world.fleet.living()):
            one = random.one_of(living)
            random.one_of((one.kill, lambda one=one: setattr(one, "is_frozen", not one.is_frozen)))()
        if random.strikes(0.1):
            group.speeds(**{name: 10 + random.number(80) for name in "abcde"})
        yield group


@pytest.mark.parametrize("seed", range(8))
def test_it_stops_nothing_that_a_sound_controller_writes(checked, seed):
    for group in storm(seed):
        group.round()
    assert checked == []


def test_it_finds_a_controller_that_starts_before_the_stop(checked, monkeypatch):
    """Else the storms above would show nothing."""
    plain = desired_state.reconcile

    def hasty(view, desired, *arguments, **more):
        released = {i: replace(m, report=m.report and replace(m.report, owned=NOBODY)) for i, m in view.members.items()}
        return plain(replace(view, members=released), desired, *arguments, **more)

    monkeypatch.setattr(desired_state, "reconcile", hasty)
    for seed in range(8):
        for group in storm(seed):
            try:
                group.round()
            except AssertionError:
                break  # the inspection has found it, too
    assert any(line.startswith("S4") for line in checked)
