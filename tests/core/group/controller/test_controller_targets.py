"""What the controller writes: Targets with everything that they were made from, and assignments beside them."""

from dataclasses import replace

import pytest

from kgs_core.group.controller import target_selection
from kgs_core.group.controller.machine import step
from kgs_core.group.controller.state import ChangeProgress
from kgs_core.group.protocol import Change, Incarnation, Member, MemberAssignment, Target, codec
from kgs_core.group.view.events import FleetSeen, Note, RecordsRead, Tick, Write
from kgs_core.group.view.transitions import State
from kgs_core.model import ConsumerId
from kgs_core.ports import Run
from tests.core.group.controller.two_readers import (
    ONE,
    RUNS,
    TARGET,
    TWO,
    A,
    B,
    C,
    acts,
    group,
    look,
    measured,
    notes,
    received,
    report,
    the_write,
    written,
)

SPARE = {"spare_consumers": 1}


def test_a_target_says_what_it_was_made_from(synchronized):
    state = synchronized()
    state, commands = look(state, measured(a=80, b=60, c=30), now=2.5)
    (write,) = acts(commands)
    assert state.name is State.REASSIGN
    assert write.target == Target(
        algorithm="mwf",
        assignment={A: 1, B: 2, C: 2},
        spares=(),
        speeds={A: 80.0, B: 60.0, C: 30.0},
        capacity=100.0,
        rscore=0.0,
        reason="partition without owner: c:0; topics or partitions changed: c:0",
        known=(ONE, TWO),
        quarantined=(),
        time_ms=5_002_500,
        measurement_offset=7,
        history=(
            Change(1_000, "first", 0, 0.0, 2),
            Change(5_002_500, "partition without owner: c:0; topics or partitions changed: c:0", 0, 0.0, 2),
        ),
    )


def test_the_target_and_the_first_assignments_of_its_change_are_one_write(synchronized):
    write = the_write(look(synchronized(), measured(a=80, b=60, c=30)))
    assert write.assignments == (MemberAssignment(TWO, frozenset({B, C})),)


def test_a_rebalance_is_logged_with_its_reason_its_price_and_its_consumers(synchronized):
    _, commands = look(synchronized(), measured(a=70, b=60, c=90))
    assert notes(commands, "rebalance") == [
        {
            "reason": "partition without owner: c:0; topics or partitions changed: c:0",
            "rscore": 0.0,
            "moved": 0,
            "consumers_before": 2,
            "consumers_after": 3,
            "overloaded": 0,
        }
    ]


def test_nothing_is_written_while_a_write_is_under_way(synchronized):
    state, _ = look(synchronized(), measured(a=80, b=60, c=30))
    for event in (RecordsRead(), FleetSeen(RUNS), measured(a=1, b=1), Tick()):
        state, commands = step(state, event, 2.0)
        assert acts(commands) == []


def test_what_was_written_is_logged_in_the_papers_words(synchronized):
    moved = replace(TARGET, assignment={A: 2, B: 1})
    state = synchronized((received(moved, 1), *group()[1:]))
    state, commands = step(state, Tick(), 1.0)
    (write,) = acts(commands)
    _, commands = step(state, written(write), 1.0)
    assert len(commands) == 2
    assert notes(commands, "StopConsuming")[0] == {
        "consumer": 1,
        "incarnation": "one",
        "count": 1,
        "partitions": ("a:0",),
    }


def test_how_long_a_change_took_is_recorded_in_the_next_target(synchronized):
    state, commands = look(synchronized(), measured(a=80, b=60, c=30), now=10.0)
    (write,) = acts(commands)
    state, _ = step(state, written(write), 10.0)
    state, _ = step(state, RecordsRead((received(report(TWO, B, C, sequence=2, applied=1), 2),)), 14.0)
    assert state.name is State.SENTINEL
    write = the_write(look(state, measured(a=80, b=60, c=30, d=5), now=20.0))
    assert [change.duration_s for change in write.target.history] == [None, 4.0, None]


def test_where_its_time_went_is_recorded_too(synchronized):
    """Measured at 6, read at 8, written at 11; consumer 3 has joined at 14, and reads at 20."""
    three = Member(ConsumerId(3), Incarnation("three"))
    state, _ = step(synchronized(), measured(a=70, b=60, c=90, age_s=2.0), 8.0)
    state, commands = step(state, Tick(), 10.0)
    (write,) = acts(commands)
    state, _ = step(state, written(write), 11.0)
    state, commands = step(state, RecordsRead((received(report(three), 2),)), 14.0)
    (order,) = acts(commands)
    state, _ = step(state, written(order), 15.0)
    state, commands = step(state, RecordsRead((received(report(three, C, sequence=2, applied=15), 3),)), 20.0)
    assert state.name is State.SENTINEL
    assert notes(commands, "change done") == [{"seen_s": 2.0, "decided_s": 3.0, "started_s": 3.0, "handed_over_s": 6.0}]
    write = the_write(look(state, measured(a=70, b=60, c=90, d=5), now=30.0))
    done = write.target.history[1]
    assert (done.seen_s, done.decided_s, done.started_s, done.duration_s) == (2.0, 3.0, 3.0, 9.0)


def test_a_change_that_no_measurement_asked_for_was_not_seen_in_one(synchronized):
    state, _ = step(synchronized(), measured(a=80, b=60), 1.0)
    state = replace(state, options=replace(state.options, packing=state.options.packing.model_copy(update=SPARE)))
    state, commands = step(state, Tick(), 2.0)
    (write,) = acts(commands)
    state, _ = step(state, written(write), 3.0)
    assert write.target.spares
    assert state.change == ChangeProgress(
        packed_at=3.0, awaited=frozenset(), started_at=3.0, settled_s=0.0
    )  # nobody is awaited who shall read
    state, _ = step(state, measured(a=80, b=60, c=90), 4.0)
    _, commands = step(state, Tick(), 5.0)
    assert [write.target.assignment[C] for write in acts(commands)] == [3], "the spare that starts holds up no change"


def test_a_target_remembers_ten_changes(synchronized):
    long = replace(TARGET, history=tuple(Change(n, "earlier", 0, 0.0, 2) for n in range(10)))
    write = the_write(look(synchronized((received(long), *group()[1:])), measured(a=80, b=60, c=30)))
    assert [change.time_ms for change in write.target.history] == [*range(1, 10), 5_001_000]


# Measurements


def test_a_measurement_grows_old_while_none_comes(synchronized):
    state, _ = step(synchronized(), measured(a=80, b=60, c=30), 1.0)
    _, commands = step(state, Tick(), 32.0)
    assert acts(commands) == []


def test_an_unknown_speed_is_the_one_that_the_target_was_packed_with(synchronized):
    """b keeps its place, and counts with 60: c does not fit beside it."""
    write = the_write(look(synchronized(), measured(a=80, c=50, unknown="b")))
    assert write.target.assignment == {A: 1, B: 2, C: 3}
    assert write.target.speeds == {A: 80.0, B: 60.0, C: 50.0}
    assert write.target.pinned == {B}


def test_a_target_that_no_record_can_hold_is_said_and_the_group_goes_on_with_the_one_that_stands(
    synchronized, membership, packing, monkeypatch
):
    """It ended the controller, and each that was started after it."""
    monkeypatch.setattr(codec, "MAX_BYTES", 1100)
    many = {f"topic-{n}": 30 for n in range(9)}
    state, commands = look(synchronized(packing=packing(spare_consumers=0)), measured(a=80, b=60, **many))
    (note,) = [command.text for command in commands if isinstance(command, Note)]
    assert note.startswith("the plan stands, new partitions are not read: Target of 1,")
    assert (acts(commands), state.name, state.writing) == ([], State.SENTINEL, None)
    monkeypatch.setattr(target_selection, "decide", lambda *_: pytest.fail("packed once more for nothing"))
    state, commands = look(state, measured(a=80, b=60, **many), now=2.0)
    assert commands == ()
    monkeypatch.undo()
    monkeypatch.setattr(codec, "MAX_BYTES", 1100)
    write = the_write(look(state, measured(a=80, b=60, c=30), now=3.0))
    assert write.target.assignment == {A: 1, B: 2, C: 2}
    state, commands = look(state, measured(a=80, b=60, **many), now=302.0)
    assert "rebalance" not in [command.text for command in commands if isinstance(command, Note)]
    assert state.search.held_back is not None


# Targets without a packing


@pytest.mark.parametrize(
    ("before", "count", "after"),
    [((), 1, (3,)), ((3,), 0, ()), ((3,), 2, (3, 4))],
    ids=["one more", "none any more", "two"],
)
def test_spares_follow_the_settings(synchronized, packing, before, count, after):
    """Without any measurement: nothing is packed for it."""
    target = replace(TARGET, spares=before)
    state = synchronized((received(target), *group()[1:]), packing=packing(spare_consumers=count))
    write = the_write(step(state, Tick(), 1.0))
    assert (write.target.spares, write.target.assignment) == (after, TARGET.assignment)
    assert write.target.reason == f"spares: {len(after)} of {count}, {len(before)} before"


def test_a_spare_that_keeps_failing_is_given_another_number(synchronized, packing):
    target = replace(TARGET, spares=(ConsumerId(3),))
    failures = [Run(ConsumerId(3), f"failed-{age_s}", age_s, is_over=True, exit_code=1) for age_s in (60.0, 40.0, 20.0)]
    state = synchronized((received(target), *group()[1:]), (*RUNS, *failures), packing=packing(spare_consumers=1))
    write = the_write(step(state, Tick(), 1.0))
    assert (write.target.spares, write.target.quarantined) == ((4,), (3,))


def test_which_of_two_processes_is_newer_outlasts_their_first_reports(synchronized):
    twin = Member(ConsumerId(1), Incarnation("twin"))
    state = synchronized((*group(), received(report(twin, applied=None), 2)))
    state, commands = step(state, Tick(), 1.0)
    (write,) = [command for command in commands if isinstance(command, Write)]
    assert write.target.known == (ONE, TWO, twin)
    assert (write.target.assignment, write.target.reason) == (TARGET.assignment, "another process of consumer 1")


def test_what_cannot_be_given_elsewhere_now_stays_with_one_that_keeps_failing(synchronized, packing):
    """No measurement to pack by: consumer 2 is tried again and again, and the Target does not contradict itself."""
    failures = [Run(ConsumerId(2), f"failed-{age_s}", age_s, is_over=True, exit_code=1) for age_s in (60.0, 40.0, 20.0)]
    messages = (received(TARGET), group()[1], group()[3])
    state = synchronized(messages, (RUNS[0], *failures), packing=packing(spare_consumers=1))
    write = the_write(step(state, Tick(), 1.0))
    assert (write.target.assignment, write.target.quarantined) == (TARGET.assignment, ())
