"""A simulated group whose consumers turn slow: plans follow only when asked, once, and through a new controller."""

from dataclasses import replace
from random import Random

import pytest

from kgs_core.group.controller.capacity import packing_in_use
from kgs_core.group.membership.member import MembershipTiming
from kgs_core.group.protocol import FlatOut
from kgs_core.planning.load import Load
from tests.sim_group import options, tp
from tests.world.consumers import Habits
from tests.world.world import World

NAMES = "abcdef"
FLAT_OUT = 120 * 2.3 / 2.0
LEARNT = {"packing_capacity_bytes_per_s": None, "consumer_capacity_bytes_per_s": None}


def group(packing):
    """Of 120 B/s in six partitions, for consumers that are packed to 100: two."""
    habits = Habits(MembershipTiming(2.0, 30.0, 300.0))
    asked = replace(options({**packing, "sentinel_timeout_s": 30.0}), first_flat_out=FLAT_OUT)
    world = World(asked, habits, Random(1))
    world.load = Load({tp(name): 20.0 for name in NAMES}, bytes_per_offset=dict.fromkeys(NAMES, 1.0))
    world.start_controller()
    world.until(world.is_at_rest, 300)
    assert readers(world) == 2
    return world


def readers(world):
    return len(set(world.controller.state.target.assignment.values()))


def all_read(world, share, noise=0.0, random=None):
    """Every process reads this share of what the configured capacity is made for, when it is flat out."""
    for process in world.fleet.living():
        rate = FLAT_OUT * share * (1 + noise * (random.uniform(-1, 1) if random else 0.0))
        process.flat_out = FlatOut(rate, 120.0, 0.0, 1000, 1000, dict.fromkeys(NAMES, 200) | {"a": 0}, "x")


def test_plans_follow_and_do_not_oscillate():
    world, random = group(LEARNT), Random(7)
    all_read(world, 0.5)
    world.until(lambda: readers(world) == 3, 300)
    world.until(world.is_at_rest, 300)
    target = world.controller.state.target
    assert target.capacity == pytest.approx(45.0)
    assert target.learnt.bytes_per_s == pytest.approx(FLAT_OUT / 2)
    stands = world.controller.state.view.target.offset
    for _ in range(60):
        all_read(world, 0.5, noise=0.04, random=random)
        world.rounds(10)
    assert world.controller.state.view.target.offset == stands


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_new_controller_packs_by_the_same(share):
    """From the reports; and from the Target, when every consumer is new and has nothing to say yet."""
    world = group(LEARNT)
    all_read(world, 0.5)
    world.until(lambda: readers(world) == 3, 300)
    world.until(world.is_at_rest, 300)
    if share == 0.0:
        for process in world.fleet.living():
            process.flat_out = None
    world.rounds(70)
    world.start_controller()
    world.rounds(200)
    world.until(world.is_at_rest, 300)
    assert readers(world) == 3
    world.load = Load({tp(name): 22.0 for name in NAMES}, bytes_per_offset=dict.fromkeys(NAMES, 1.0))
    world.rounds(200)
    assert world.controller.state.target.capacity == pytest.approx(45.0)


def test_what_is_learnt_of_a_class_is_known_when_none_of_its_consumers_is_left():
    """Else it would be taken for what its processors promise, and tried again and again."""
    cpus = {"small": "1", "large": "4"}
    classes = {name: {"price_per_hour": cpu, "resources": {"requests": {"cpu": cpu}}} for name, cpu in cpus.items()}
    world = group({**LEARNT, "classes": classes, "consumer_weight": "fewest"})
    world.load = replace(world.load, speeds=world.load.speeds | {tp("a"): 160.0})
    world.until(lambda: "large" in world.controller.state.target.classes, 100)
    for _ in range(200):
        for process in world.fleet.living():
            reads = {"small": 1.0, "large": 2.0}[process.consumer_class]
            process.flat_out = FlatOut(FLAT_OUT * reads, 120.0, 0.0, 1000, 1000, dict.fromkeys(NAMES, 200), "x")
        world.rounds(1)
    world.load = replace(world.load, speeds=dict.fromkeys(world.load.speeds, 10.0))
    world.rounds(200)
    assert set(world.controller.state.target.class_of.values()) == {"small"}
    world.start_controller()
    world.rounds(100)
    assert packing_in_use(world.controller.state).size("large") == pytest.approx(2.0)
