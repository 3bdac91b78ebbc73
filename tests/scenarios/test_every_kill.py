"""The controller is killed at every single point of a group's life, and the next one carries on.

The points are not listed anywhere: a first pass without a kill counts them, command by command.
"""

from random import Random
from typing import get_args

import pytest

from kgs_core.group.controller.plan_request import ASKED
from kgs_core.group.membership.member import MembershipTiming
from kgs_core.group.protocol import Target
from kgs_core.group.view.events import Command, Note, Write
from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load
from tests.sim_group import options
from tests.world.consumers import Habits
from tests.world.controllers import Moment
from tests.world.world import World

MOST_ROUNDS = 60


class Life:
    """A group's life from its first assignment on, with a supervisor that starts a controller when none lives."""

    def __init__(self, kill_at: int | None) -> None:
        self.points = []
        self.kill_at = kill_at
        packing = {"spare_consumers": 1, "sentinel_timeout_s": 15, "apply": "forced_only"}
        found = options(packing, suspect_after_s=4, start_timeout_s=5)
        habits = Habits(MembershipTiming(found.membership.heartbeat_s, found.membership.suspect_after_s, 300))
        self.world = World(found, habits, Random(0))

    def dies_at(self, point):
        self.points.append(point)
        return len(self.points) - 1 == self.kill_at

    def settle(self, **speeds):
        """The load changes, and the group comes to rest."""
        self.world.load = Load({TopicPartition(name, 0): float(speed) for name, speed in speeds.items()})
        for _ in range(MOST_ROUNDS):
            if not any(controller.lives for controller in self.world.controllers):
                self.world.start_controller().killer = self.dies_at
            self.world.round()
            if self.world.is_at_rest():
                return
        pytest.fail(f"not at rest after {MOST_ROUNDS} rounds, killed at {self.kill_at}")

    def play(self):
        """First assignment, growth, a death, a start that never reports, a silence, and less load."""
        self.settle(a=50, b=40)
        self.settle(a=80, b=60)
        self.world.reading(1).kill()
        self.settle(a=80, b=60)
        hung = self.world.fleet.add(9)
        hung.is_frozen = True
        self.settle_without(hung)
        self.settle(a=30, b=20)
        self.world.ask_for_plan()
        self.world.rounds(2)
        self.settle(a=30, b=20)
        return self

    def answers(self):
        """Targets that carry out what was asked for."""
        targets = [one.message for one in self.world.topics.history if isinstance(one.message, Target)]
        return [one.reason for one in targets if ASKED in one.reason]

    def settle_without(self, hung):
        """Nobody wants the process that hangs: it is asked to end, and does when it goes on."""
        self.world.rounds(2)
        hung.is_frozen = False
        self.settle(a=80, b=60)


@pytest.fixture(scope="module")
def unharmed():
    return Life(kill_at=None).play()


def test_all_commands_and_moments_occur(unharmed):
    """Else the kills below would leave some out."""
    commands = {command.__name__ for command in get_args(Command)} - {Note.__name__}
    expected = {(command, moment) for command in commands for moment in (Moment.BEFORE, Moment.AFTER)}
    expected.add((Write.__name__, Moment.INSIDE))
    assert {(point.command, point.moment) for point in unharmed.points} == expected
    assert unharmed.world.inspection.problems + unharmed.world.inspection.doubled == []


def test_killed_at_any_point_the_next_controller_carries_on(unharmed):
    """Nothing is owned twice, nobody is started twice, and the group comes to the same kind of rest."""
    hit = set()
    for number, point in enumerate(unharmed.points):
        life = Life(kill_at=number).play()
        assert life.points[number] == point
        assert len(life.world.controllers) == 2, f"nobody was killed at {point}"
        assert life.world.inspection.problems + life.world.inspection.doubled == [], point
        assert len(life.answers()) == 1, point
        hit.add(point)
    assert hit == set(unharmed.points)
