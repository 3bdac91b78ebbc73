"""What the controller does beyond the scenarios: when silence counts, who has the right to write, who is started."""

import pytest

from kgs_core.group.controller.machine import begin, step
from kgs_core.group.controller.state import Result
from kgs_core.group.protocol import Heartbeat, MemberAssignment, Phase, Tombstone
from kgs_core.group.view.events import Fence, FleetSeen, Launch, ReadToEnd, RecordsRead, StartFailed, Stop, Tick
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


def test_it_begins_with_a_fence_and_only_then_reads(options):
    _, commands = begin(options(), 0.0, 0)
    assert commands == (Fence(), ReadToEnd())


# Silence


def test_whoever_did_not_listen_suspects_nobody(synchronized):
    """The controller was frozen for a minute: that it has heard nothing says nothing."""
    state, commands = step(synchronized(), Tick(), 60.0)
    assert notes(commands, "suspected") == []
    state, commands = step(state, RecordsRead(), 61.0)
    assert notes(commands, "suspected") == []
    for now in range(62, 91):
        state, commands = step(state, RecordsRead(), now)
        assert notes(commands, "suspected") == []
    _, commands = step(state, RecordsRead(), 91.5)
    assert [fields["consumer"] for fields in notes(commands, "suspected")] == [1, 2]


def test_old_reports_are_no_sign_of_life_for_a_new_controller(synchronized):
    """Consumer 2 was silent for long before the controller came: nobody waits for it once more."""
    messages = (*group()[:3], received(report(TWO, B), 0, 100.0), received(report(ONE, A), 1, 200.0))
    state = synchronized(messages, runs=())
    write = the_write(look(state, measured(a=30, b=30)))
    assert write.target.assignment == {A: 1, B: 1}


# Who has the right to write


def test_records_of_somebody_else_mean_that_the_right_to_write_is_gone(synchronized):
    for message in (TARGET, MemberAssignment(ONE, frozenset()), Tombstone(TWO)):
        state, _ = step(synchronized(), RecordsRead((received(message, 9),)), 1.0)
        assert (state.name, state.outcome.result) == (State.ENDED, Result.FENCED)


def test_ones_own_records_come_back_and_mean_nothing(synchronized):
    state, commands = look(synchronized(), measured(a=80, b=60, c=30))
    (write,) = acts(commands)
    state, _ = step(state, written(write), 1.0)
    again, _ = step(state, RecordsRead((*group(), *written(write).messages)), 1.0)
    assert again.name is State.GROUP_MANAGEMENT


# The fleet


def test_nobody_is_started_before_the_fleet_has_spoken(options):
    state, _ = begin(options(), 0.0, 0)
    state, commands = step(state, RecordsRead((received(TARGET),)), 0.0)
    state, commands = step(state, Tick(), 1.0)
    assert acts(commands) == []
    _, commands = look(state, FleetSeen(()), 2.0)
    assert acts(commands) == [Launch(1), Launch(2)]


def test_a_launch_is_not_repeated_before_the_fleet_shows_its_run(synchronized):
    state = synchronized((received(TARGET),), runs=())
    state, commands = step(state, Tick(), 1.0)
    assert acts(commands) == [Launch(1), Launch(2)]
    state, commands = look(state, FleetSeen(()), 2.0)
    assert acts(commands) == []
    state, commands = look(state, StartFailed(ConsumerId(2), "no room"), 3.0)
    assert acts(commands) == []
    _, commands = step(state, Tick(), 8.0)
    assert acts(commands) == [Launch(2)]


@pytest.mark.parametrize("number", [7, 2], ids=["nobody wants it", "a double of one that is heard"])
def test_a_run_that_nobody_wants_is_asked_to_end_once(synchronized, number):
    """Were a double to join, it would take over all that the other reads: for nothing."""
    stray = Run(ConsumerId(number), "stray", 1.0, is_over=False)
    state = synchronized(runs=(*RUNS, stray))
    state, commands = step(state, Tick(), 1.0)
    assert acts(commands) == [Stop("stray")]
    _, commands = look(state, FleetSeen((*RUNS, stray)), 2.0)
    assert acts(commands) == []


def test_an_older_run_of_a_consumer_that_is_heard_is_left_alone(synchronized):
    """It may be the one that is silent, and whether it is dead is for the fleet to say."""
    state = synchronized(runs=(*RUNS, Run(ConsumerId(2), "before", 90.0, is_over=False)))
    assert acts(step(state, Tick(), 1.0)[1]) == []


def test_without_a_target_no_run_is_touched(synchronized):
    state = synchronized(())
    _, commands = step(state, Tick(), 1.0)
    assert acts(commands) == []


@pytest.mark.parametrize("launches", [True, False])
def test_one_that_only_hands_over_starts_and_stops_nobody(synchronized, launches):
    state = synchronized(
        (received(TARGET),), runs=(Run(ConsumerId(7), "run-7", 1.0, is_over=False),), launches=launches
    )
    _, commands = step(state, Tick(), 1.0)
    assert bool(acts(commands)) == launches


# One change only


def test_a_run_without_a_fresh_measurement_packs_nothing(synchronized):
    state, commands = look(synchronized(until_done=True), measured(a=80, b=60, c=30, age_s=60.0))
    assert acts(commands) == []
    assert (state.name, state.outcome.result) == (State.ENDED, Result.NOTHING_TO_DO)
    assert state.outcome.reason == "no measurement is fresh enough to pack by"


def test_a_run_ends_when_its_time_is_over(synchronized):
    state, commands = look(synchronized(until_done=True), measured(a=80, b=60, c=30))
    (write,) = acts(commands)
    state, _ = step(state, written(write), 1.0)
    for now in range(2, 302):
        beats = [Heartbeat(member, now + 1, Phase.READING, 0.0, None) for member in (ONE, TWO)]
        state, _ = step(state, RecordsRead([received(beat, 2 * now, 100.0 + now) for beat in beats]), now)
    assert (state.name, state.outcome.result) == (State.ENDED, Result.TIMED_OUT)
    assert state.outcome.reason == "not finished after 300 s"
