"""Windows of quiet and the budget of an hour, where they count: in what is planned, written and logged."""

from dataclasses import replace

import pytest

from kgs_core.group.controller.machine import step
from kgs_core.group.controller.measuring import take_measured
from kgs_core.group.controller.target_selection import select_target
from kgs_core.group.protocol import Change, DesiredVersion, Incarnation, Member
from kgs_core.group.view.events import Note, Stop, Tick
from kgs_core.model import ConsumerId
from kgs_core.planning.rebalance_budget import HeldBack
from kgs_core.planning.triggers import Reason
from kgs_core.ports import Run
from tests.a_status import sentences_of
from tests.core.group.controller.two_readers import (
    RUNS,
    TARGET,
    acts,
    group,
    look,
    measured,
    received,
    report,
    the_write,
    written,
)

NOW_S = 400.0
"""Later than a better packing is looked for; the clock says 01:30 UTC."""


def applied(windows):
    return f"forced_only {', '.join(windows)}" if windows else "auto"


class TestWindowsOfQuiet:
    @pytest.fixture
    def looked(self, synchronized, packing):
        """What is due by these windows and speeds, so many seconds after 01:30."""

        def build(windows, after_s=0.0, timeout_s=300, **speeds):
            settings = packing(apply=applied(windows), sentinel_timeout_s=timeout_s)
            state = replace(synchronized(packing=settings), wall_ms=(90 * 60 - NOW_S) * 1000.0)
            now = NOW_S + after_s
            return select_target(take_measured(state, measured(**speeds), now), now).target

        return build

    @pytest.mark.parametrize(
        ("windows", "when", "is_looked_for"),
        [
            ([], {}, True),
            (["01:31-02:00"], {}, True),
            (["00:00-01:30"], {}, True),
            (["01:30-01:31"], {}, False),
            (["00:00-00:10", "01:00-02:00"], {}, False),
            (["23:00-02:00"], {}, False),
            ([], {"timeout_s": 1}, True),
            (["01:00-02:00"], {"timeout_s": 1}, False),
            (["01:30-01:31"], {"after_s": 59}, False),
            (["01:30-01:31"], {"after_s": 60}, True),
        ],
    )
    def test_a_better_packing_is_looked_for_outside_of_them_and_at_once_when_one_closes(
        self, looked, windows, when, is_looked_for
    ):
        target = looked(windows, **when, a=30, b=20)
        assert (target and target.reason) == (Reason.TIMEOUT if is_looked_for else None)

    def test_inside_what_is_forced_is_done(self, looked):
        target = looked(["01:00-02:00"], a=80, b=60, c=30)
        assert "partition without owner: c:0" in target.reason


def test_while_a_replacement_goes_on_no_better_packing_is_looked_for(synchronized):
    """One consumer could read all; but spare 3 has joined, of the wanted version, and takes over from 1."""
    target = replace(TARGET, spares=(ConsumerId(3),))
    version, spare = DesiredVersion("2", "", "somebody", 0), Member(ConsumerId(3), Incarnation("three"))
    joined = received(replace(report(spare, applied=None), version="2"), 5)
    state = synchronized((*group(target), received(version, 5), joined))
    write = the_write(look(state, measured(a=30, b=20), 400.0))
    assert write.target.reason == "replacement: consumer 1 is outdated, spare 3 takes its partitions"


class TestBudgetOfAnHour:
    NOW_S = 400.0
    """Five minutes after the Target, and more."""
    LOGGED = "held back: 1.2 of at most 1.0 Rscore an hour (1.0 moved, 0.2 to move)"

    @pytest.fixture
    def bounded(self, synchronized, options):
        """A controller that has just read a Target which has moved 1.0, by so much more than an hour ago or less."""

        def build(moved_ago_s, **changes):
            wall_ms = 5_000_000 + round(self.NOW_S * 1000)
            moved = Change(wall_ms - round(moved_ago_s * 1000), "overload", 3, 1.0, 2)
            target = replace(TARGET, history=(moved,))
            packing = options().packing.model_copy(update={"max_rscore_per_hour": 1.0})
            return synchronized((received(target), *group()[1:]), packing=packing, **changes)

        return build

    def test_what_another_controller_has_moved_counts(self, bounded):
        state, commands = look(bounded(3599), measured(a=30, b=20), self.NOW_S)
        assert acts(commands) == []
        assert [command.text for command in commands if isinstance(command, Note)] == [self.LOGGED]
        assert self.LOGGED in sentences_of(state, self.NOW_S)

    def test_it_is_logged_once_and_beside_what_is_done(self, bounded):
        stray = Run(ConsumerId(7), "run-7", 1.0, is_over=False)
        state, commands = look(bounded(60, runs=(*RUNS, stray)), measured(a=30, b=20), self.NOW_S)
        assert commands == (Stop("run-7"), Note(self.LOGGED))
        _, commands = step(state, Tick(), self.NOW_S + 1)
        assert commands == ()

    def test_an_hour_later_it_does_not(self, bounded):
        state, commands = look(bounded(3600), measured(a=30, b=20), self.NOW_S)
        (write,) = acts(commands)
        assert [one.rscore for one in write.target.history] == [1.0, 0.2]
        assert state.search.held_back is None

    def test_a_held_back_change_is_looked_at_again_after_the_timeout(self, bounded):
        state, _ = look(bounded(3400), measured(a=30, b=20), self.NOW_S)
        state, commands = look(state, measured(a=30, b=20), self.NOW_S + 299)
        assert acts(commands) == []
        _, commands = look(state, measured(a=30, b=20), self.NOW_S + 301)
        (write,) = acts(commands)
        assert write.target.rscore == 0.2

    def test_once_something_was_written_nothing_is_held_back(self, bounded):
        state, _ = look(bounded(60), measured(a=30, b=20), self.NOW_S)
        assert state.search.held_back == HeldBack(0.2, 1.0, 1.0)
        state, commands = look(state, measured(a=80, b=60, c=30), self.NOW_S + 1)
        (write,) = acts(commands)
        state, _ = step(state, written(write), self.NOW_S + 1)
        assert state.search.held_back is None

    def test_a_rebalance_run_says_why_it_does_nothing(self, bounded):
        state, _ = look(bounded(60, until_done=True), measured(a=30, b=20), self.NOW_S)
        assert state.outcome is not None
        assert state.outcome.reason == self.LOGGED
