"""What the controller writes to its log: every line once, whatever else is done in the same step."""

from dataclasses import replace

import pytest

from kgs_core.group.controller.machine import step
from kgs_core.group.controller.state import ChangeProgress, VainSearch
from kgs_core.group.protocol import DesiredVersion, Heartbeat, Incarnation, Member, Phase
from kgs_core.group.view.events import Note, RecordsRead, StartFailed, Tick
from kgs_core.group.view.transitions import Cause, State
from kgs_core.model import ConsumerId
from kgs_core.ports import Run
from tests.core.group.controller.two_readers import (
    ONE,
    RUNS,
    TARGET,
    A,
    B,
    acts,
    group,
    look,
    measured,
    notes,
    received,
    report,
    written,
)

BLIND = "not looking for a better packing: the write speed of b:0 is unknown"


def texts(commands):
    """The lines of the log, without their fields."""
    return [command.text for command in commands if isinstance(command, Note)]


def transitions(commands):
    return [(fields["to"], fields["cause"], fields["why"]) for fields in notes(commands, "state")]


def beat(member, number):
    """Heard at this second."""
    return received(Heartbeat(member, number, Phase.READING, 0.0, None), number, 100.0 + number)


@pytest.fixture
def changing(synchronized):
    """A controller that carries out a change since second 1: c is to be read by 2, which has not said so."""
    state, commands = look(synchronized(), measured(a=80, b=60, c=30))
    (write,) = acts(commands)
    return step(state, written(write), 1.0)[0]


def test_a_launch_that_was_refused_is_logged_with_its_reason(synchronized):
    _, commands = step(synchronized(), StartFailed(ConsumerId(2), "no room"), 1.0)
    assert commands == (Note("start failed", {"consumer": 2, "why": "no room"}),)


class TestChange:
    def test_who_falls_silent_is_logged_beside_the_change_that_it_puts_an_end_to(self, changing):
        for now in range(2, 32):
            changing, commands = step(changing, RecordsRead((beat(ONE, now),)), now)
        assert texts(commands) == ["suspected", "state"]
        assert notes(commands, "suspected") == [{"consumer": 2, "incarnation": "two"}]
        assert transitions(commands) == [(State.SENTINEL, Cause.SUPERSEDED, "consumer lost: 2")]

    def test_one_that_takes_too_long_is_given_up_after_so_many_seconds(self, changing):
        changing, commands = step(changing, Tick(), 300.9)
        assert transitions(commands) == []
        _, commands = step(changing, Tick(), 301.0)
        assert transitions(commands) == [(State.SENTINEL, Cause.TIMED_OUT, "not finished after 300 s")]

    def test_whoever_comes_and_can_read_what_nobody_reads_is_named(self, synchronized):
        """Consumer 2 has not come; 3 comes instead, while the group waits for it."""
        state = synchronized((*group()[:2], group()[3]), runs=RUNS)
        state = replace(state, name=State.GROUP_MANAGEMENT)
        spare = Member(ConsumerId(3), Incarnation("three"))
        _, commands = step(state, RecordsRead((received(report(spare, applied=None), 5),)), 1.0)
        assert transitions(commands)[0] == (
            State.SENTINEL,
            Cause.SUPERSEDED,
            "a joined consumer can read b:0",
        )

    def test_other_assignments_are_logged_beside_their_reason(self, synchronized):
        wanted = replace(TARGET, assignment={A: 2, B: 1})
        _, commands = step(synchronized((received(wanted, 1), *group()[1:])), Tick(), 1.0)
        assert len(acts(commands)) == 1
        assert transitions(commands) == [(State.GROUP_MANAGEMENT, Cause.OTHER_ASSIGNMENTS, "")]

    def test_its_time_counts_to_when_it_was_there_first(self, synchronized):
        """What is mended later, as after a pause, is no part of the change."""
        state = replace(synchronized(), name=State.GROUP_MANAGEMENT, change=ChangeProgress(0.0, settled_s=4.0))
        state, _ = step(state, Tick(), 50.0)
        assert (state.name, state.change.settled_s) == (State.SENTINEL, 4.0)

    def test_what_was_amiss_before_it_puts_no_end_to_it(self, synchronized):
        """A start of consumer 2 failed a while ago."""
        wanted = replace(TARGET, assignment={A: 2, B: 1})
        failed = Run(ConsumerId(2), "failed", 20.0, is_over=True, exit_code=1)
        state = synchronized((received(wanted, 1), *group()[1:]), (*RUNS, failed))
        state, commands = step(state, Tick(), 1.0)
        (write,) = acts(commands)
        state, commands = step(state, written(write), 1.0)
        assert (state.name, transitions(commands)) == (State.GROUP_MANAGEMENT, [])


class TestWaits:
    @pytest.fixture
    def due(self, synchronized):
        """A better packing has been due for long."""
        return replace(synchronized(), change=ChangeProgress(0.0))

    def test_what_is_waited_for_is_logged_once_until_it_is_over(self, due):
        state, commands = look(due, measured(a=80, unknown="b"), 400.0)
        assert texts(commands) == [BLIND]
        state, commands = step(state, Tick(), 401.0)
        assert commands == ()
        state, commands = look(state, measured(a=80, b=60), 402.0)
        assert commands == ()
        state = replace(state, search=VainSearch())
        _, commands = look(state, measured(a=80, unknown="b"), 403.0)
        assert texts(commands) == [BLIND]

    def test_all_that_is_waited_for_is_one_line(self, synchronized):
        """Of a replacement, and of a better packing."""
        target = replace(TARGET, spares=(ConsumerId(3),))
        version = received(DesiredVersion("2", "", "somebody", 0), 5)
        state = replace(synchronized((*group(target), version)), change=ChangeProgress(0.0))
        _, commands = look(state, measured(a=80, unknown="b"), 400.0)
        assert texts(commands) == [f"the replacement waits for consumers to join: 3; {BLIND}"]
