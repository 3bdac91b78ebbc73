"""Controllers with a fault each: storms must find it, or they would find nothing in a sound group either."""

from dataclasses import replace

import pytest

from kgs_core.control import management
from kgs_core.control.controller import step
from kgs_core.control.controller_state import ControllerState
from kgs_core.control.events import Fence
from kgs_core.control.load import Load
from kgs_core.control.reconcile import Changes, reconcile
from kgs_core.control.starts import plan_starts
from kgs_core.control.view import MemberView
from kgs_core.model import TopicPartition
from kgs_core.sim.chance import Trouble
from kgs_core.sim.storm import Storm

HISTORIES = 150
FENCING = {"favours": "controller", "trouble": Trouble(late=0.3, write_hangs=0.3)}
"""Weather in which it matters who has the pen."""


def without_fencing(world, _monkeypatch):
    world.topics.fences = False


def retire_at_once(_world, monkeypatch):
    """Who is not wanted is told to end although it may hold something."""

    def hasty(view, desired, wanted, suspected, *, strict):
        changes = reconcile(view, desired, wanted, suspected, strict=strict)
        orders = [o if o.member.consumer in wanted else replace(o, retire=True) for o in changes.orders]
        return Changes(tuple(orders), changes.tombstones)

    monkeypatch.setattr(management, "reconcile", hasty)


def start_before_stop(_world, monkeypatch):
    """Nobody holds anything: partitions are given at once."""
    monkeypatch.setattr(MemberView, "possibly_owned", frozenset())


def forget_later_orders(_world, monkeypatch):
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

    monkeypatch.setattr("kgs_core.sim.controllers.step", rash)


FAULTS = {
    without_fencing: ("S4", FENCING),
    believe_the_last_read: ("S4", FENCING),
    retire_at_once: ("S7", {}),
    start_before_stop: ("S4", {}),
    forget_later_orders: ("S4", {}),
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


@pytest.mark.parametrize("is_faulty", [True, False])
def test_a_start_beside_a_fresh_report_is_found(new_world, monkeypatch, is_faulty):
    """The fleet has lost its memory; a controller that goes by runs alone starts everybody once more."""
    if is_faulty:
        by_runs_alone = lambda wanted, history, settings: plan_starts(  # noqa: E731
            wanted, replace(history, present=frozenset()), settings
        )
        monkeypatch.setattr("kgs_core.control.controller_state.plan_starts", by_runs_alone)
    world = new_world(0)
    world.load = Load({TopicPartition("a", 0): 50.0})
    world.start_controller()
    world.rounds(5)
    world.fleet.forget()
    world.rounds(5)
    assert bool(world.inspection.doubled) == is_faulty
