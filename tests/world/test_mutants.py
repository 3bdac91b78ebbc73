"""Controllers with a fault each: storms must find it, or they would find nothing in a sound group either."""

from dataclasses import replace

import pytest

from kgs_core.group.controller import desired_state
from kgs_core.group.controller.machine import step
from kgs_core.group.controller.state import ControllerState
from kgs_core.group.view.events import Fence, Write
from kgs_core.group.view.member_view import MemberView
from kgs_core.group.view.reconcile import reconcile
from kgs_core.group.view.restart_policy import plan_starts
from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load
from tests.world.chance import FaultRates
from tests.world.storm import Storm

HISTORIES = 150
FENCING = {"favours": "controller", "trouble": FaultRates(late=0.3, write_hangs=0.3)}
"""Weather in which it matters who has the right to write."""


def without_fencing(world, _monkeypatch):
    world.topics.fences = False


def retire_at_once(_world, monkeypatch):
    """Who is not wanted is told to end although it may hold something."""

    def hasty(view, desired, wanted, suspected, **keywords):
        changes = reconcile(view, desired, wanted, suspected, **keywords)
        assignments = [o if o.member.consumer in wanted else replace(o, retire=True) for o in changes.assignments]
        return Write(None, tuple(assignments), changes.tombstones)

    monkeypatch.setattr(desired_state, "reconcile", hasty)


def start_before_stop(_world, monkeypatch):
    """Nobody holds anything: partitions are given at once."""
    monkeypatch.setattr(MemberView, "possibly_owned", frozenset())


def forget_later_assignments(_world, monkeypatch):
    """What a report says is all that counts, although a later Assignment is on its way."""
    said = property(lambda self: self.report.owned if self.report and not self.ended else frozenset())
    monkeypatch.setattr(MemberView, "possibly_owned", said)


def free_by_silence(_world, monkeypatch):
    """Silence frees partitions, although only a confirmed death may."""
    monkeypatch.setattr(ControllerState, "strict", False)


def believe_the_last_read(_world, monkeypatch):
    """Where nobody knows what became of a Write, it reads without fencing: the transaction may end afterwards."""

    def rash(state, event, now):
        stepped, commands = step(state, event, now)
        return stepped, tuple(c for c in commands if not isinstance(c, Fence))

    monkeypatch.setattr("tests.world.controllers.step", rash)


FAULTS = {
    without_fencing: ("S4", FENCING),
    believe_the_last_read: ("S4", FENCING),
    retire_at_once: ("S7", {}),
    start_before_stop: ("S4", {}),
    forget_later_assignments: ("S4", {}),
    free_by_silence: ("S4", {}),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_found(new_world, monkeypatch, fault):
    rule, weather = FAULTS[fault]
    for seed in range(HISTORIES):
        world = new_world(seed, strict=True)
        fault(world, monkeypatch)
        world.start_controller()
        storm = Storm(world, 8, **weather)
        world.rounds(5)
        storm.steps(500)
        if any(problem.split(": ", 1)[1].startswith(rule) for problem in world.inspection.problems):
            return
    pytest.fail(f"{HISTORIES} histories and nothing found")


def keep_the_plan(monkeypatch):
    """What is planned for a consumer that is not there waits for it."""
    for module in ("planning.plan", "group.controller.target_selection"):
        monkeypatch.setattr(f"kgs_core.{module}.to_joined", lambda planned, *_: dict(planned))


def use_spares_only(monkeypatch):
    """Room that readers have is not used."""
    monkeypatch.setattr("kgs_core.planning.placement._fill", lambda *_: None)


def wait_for_the_end_of_a_change(monkeypatch):
    """Who joins while a change goes on is not looked at before it is over."""
    monkeypatch.setattr("kgs_core.group.controller.machine.unread_to_place", lambda *_: "")


@pytest.mark.slow
@pytest.mark.parametrize("fault", [keep_the_plan, use_spares_only, wait_for_the_end_of_a_change])
def test_partitions_left_unread_are_found(new_world, monkeypatch, fault):
    """L4."""
    fault(monkeypatch)
    for seed in range(20):
        world = new_world(seed, start_timeout_s=120)
        world.start_controller()
        Storm(world, 8).deaths(400)
        if any(problem.split(": ", 1)[1].startswith("L4") for problem in world.inspection.problems):
            return
    pytest.fail("20 histories and nothing found")


@pytest.mark.parametrize("is_faulty", [True, False])
def test_a_start_beside_a_fresh_report_is_found(new_world, monkeypatch, is_faulty):
    """The fleet has lost its memory; a controller that goes by runs alone starts everybody once more."""
    if is_faulty:
        by_runs_alone = lambda wanted, history, settings: plan_starts(  # noqa: E731
            wanted, replace(history, present=frozenset()), settings
        )
        monkeypatch.setattr("kgs_core.group.controller.state.plan_starts", by_runs_alone)
    world = new_world(0)
    world.load = Load({TopicPartition("a", 0): 50.0})
    world.start_controller()
    world.rounds(5)
    world.fleet.forget()
    world.rounds(5)
    assert bool(world.inspection.doubled) == is_faulty
