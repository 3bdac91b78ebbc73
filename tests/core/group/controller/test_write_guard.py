"""The last look before a write: it lets pass whatever a sound controller writes, and stops what would do harm."""

from dataclasses import replace

import pytest

from kgs_core.group.controller import desired_state
from kgs_core.group.controller.write_guard import check_owners, check_write
from kgs_core.group.protocol import Phase
from kgs_core.group.view.events import Write
from kgs_core.group.view.group_view import GroupView
from kgs_core.model import ConsumerId, TopicPartition
from tests.cases import cases
from tests.core.group.controller.watched_group import WatchedGroup, options
from tests.core.group.view.group_words import at, gives, report, settled, target, view_of
from tests.world import controllers

NOBODY = frozenset()
P, Q = (TopicPartition(name, 0) for name in "pq")
HELD = settled(c1="p", c2="")
RELEASED = view_of(at(11, gives("1a", "", "p")), at(0, report("1a", applied=11)), at(1, report("2a")))
ASSIGNED = view_of(at(5, gives("1a", "p")), at(0, report("1a")), at(1, report("2a")))
DOUBLED = view_of(
    *(at(0, gives(name, "p")) for name in ("1a", "2a")), at(0, report("1a", "p", 0)), at(1, report("2a", applied=0))
)
STOP_START = (gives("1a", "", "p"), gives("2a", "p"))
EARLY = "S4 p:0: enters the Assignment of 2@2a while 1@1a may hold it"


def problems(view, *assignments, suspected=NOBODY, strict=False, target=None):
    return check_write(view, suspected, Write(target, assignments), strict=strict)


@cases(
    ("view", "assignments", "found"),
    {
        "told to stop": (HELD, (gives("1a", "", "p"), gives("2a", pending="p")), []),
        "stopped, confirmed, started": (RELEASED, (gives("1a"), gives("2a", "p")), []),
        "started before the stop": (HELD, STOP_START, [EARLY]),
        "what was assigned and not confirmed counts as held": (
            ASSIGNED,
            (gives("2a", "p"),),
            [EARLY, "S1 by Assignments: p:0"],
        ),
        "two in one write": (RELEASED, (gives("1a", "p"), gives("2a", "p")), ["S1 by Assignments: p:0"]),
        "who holds something is told to end": (HELD, (gives("1a", "", "p", retire=True),), ["S7 1@1a"]),
        "what was wrong before": (DOUBLED, (gives("1a", "pq"),), []),
        "what mends it": (DOUBLED, (gives("2a", "", "p"),), []),
    },
)
def test_what_would_do_harm_is_found(view, assignments, found):
    lines = problems(view, *assignments)
    assert len(lines) == len(found)
    assert all(line.startswith(begin) for line, begin in zip(lines, found, strict=True))


def test_a_suspect_loses_what_another_gains_but_not_where_handover_is_strict():
    assert problems(HELD, *STOP_START, suspected=frozenset({"1a"})) == ()
    assert problems(HELD, *STOP_START, suspected=frozenset({"1a"}), strict=True) == (EARLY,)


@pytest.mark.parametrize(
    ("assignment", "speeds", "found"),
    [
        ({P: 1}, {P: 1.0, Q: 1.0}, ("S6 q:0: has no consumer",)),
        ({P: 1, Q: 1}, {P: 1.0}, ("S6 q:0: is not known, and has a consumer",)),
        ({P: 0}, {P: 1.0}, ("S6 p:0: 0 is not a consumer's number",)),
        ({P: 1, Q: 1}, {P: 999.0, Q: 999.0}, ()),
    ],
    ids=["left out", "unknown", "no number", "above capacity, which endangers nothing"],
)
def test_a_target_that_leaves_a_partition_out_is_found(assignment, speeds, found):
    numbers = {tp: ConsumerId(number) for tp, number in assignment.items()}
    assert problems(GroupView(), target=replace(target(), assignment=numbers, speeds=speeds)) == found


def test_two_that_say_to_own_the_same_are_found_unless_one_has_yet_to_read_what_it_lost():
    both = view_of(at(0, report("1a", "p")), at(1, report("2a", "p")))
    assert check_owners(both, NOBODY) == ("p:0: owned by 1@1a and 2@2a",)
    assert check_owners(both, frozenset({"1a"})) == ()
    back = view_of(
        at(1, gives("1a")), at(0, report("1a", "p", 0)), at(0, gives("2a", "p")), at(1, report("2a", "p", 0))
    )
    assert check_owners(back, NOBODY) == ()
    ended = view_of(at(0, report("1a", "p", phase=Phase.ENDED)), at(1, report("2a", "p")))
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
