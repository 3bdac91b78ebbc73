"""Short histories of a group in which everything goes wrong that can; a failure is replayed by its seed.

`python -m pytest tests/world/test_storm.py -k 'seed17'` plays one of them again.
"""

import pytest

from kgs_core.group.protocol import MemberAssignment, Target, Tombstone
from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load
from tests.world.storm import Storm

SEEDS = range(80)
STEPS = 500
PARTITIONS = 8
LOOK = 16
"""Rounds within which a better packing is looked for."""
CHANGES = 3
"""What calm may still bring: the last step of a replacement, a better packing after it, then no more."""


def come_to_rest(world, storm):
    """L2."""
    most = 4 * (PARTITIONS + len(world.fleet.living()))
    for _ in range(most):
        if world.is_at_rest():
            return
        storm.calm_round()
    pytest.fail(f"not at rest after {most} rounds: {storm.done}")


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed{seed}")
def test_nothing_forbidden_happens_and_afterwards_the_group_comes_to_rest(new_world, seed):
    """S1, S4, S6, S7, S9 at every step; then L2: at rest after 4 x (moves + consumers) rounds; then L3."""
    world = new_world(seed, strict=seed % 4 == 3)
    world.start_controller()
    storm = Storm(world, PARTITIONS)
    world.rounds(5)
    storm.steps(STEPS)
    assert world.inspection.problems == [], storm.done
    storm.calm()
    come_to_rest(world, storm)
    for _ in range(CHANGES):
        stood = world.controller.state.target
        world.rounds(LOOK)
        come_to_rest(world, storm)
        if world.controller.state.target == stood:
            break
    before = len(world.topics.history)
    world.rounds(LOOK)
    said = [
        one.message
        for one in world.topics.history[before:]
        if isinstance(one.message, Target | MemberAssignment | Tombstone)
    ]
    assert said == [], storm.done
    assert world.inspection.problems == [], storm.done


def carried_out(world):
    return len({one.message.applied_ms for one in world.topics.history if isinstance(one.message, Target)})


def test_what_nothing_forces_is_done_when_asked_for_only_and_once_whatever_goes_wrong(new_world):
    """The load falls again and again, so that there is a better packing."""
    found = 0
    for seed in range(20):
        world = new_world(seed, strict=seed % 4 == 3, apply="forced_only")
        world.start_controller()
        storm = Storm(world, PARTITIONS, likelihood=0.1, favours="ask for")
        for speed in (60.0, 10.0, 60.0, 10.0):
            world.load = Load({TopicPartition("t", number): speed for number in range(PARTITIONS // 2)})
            for _ in range(20):
                storm.calm_round()
            storm.steps(60)
        assert world.inspection.problems == [], (seed, storm.done)
        storm.calm()
        come_to_rest(world, storm)
        assert world.inspection.problems == [], (seed, storm.done)
        found += carried_out(world)
    assert found >= 30, "else nothing is shown"


@pytest.mark.parametrize(
    "seed",
    [*range(8), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(8, 20))],
    ids=lambda seed: f"seed{seed}",
)
def test_what_the_dead_have_left_is_read_by_whoever_has_joined(new_world, seed):
    """L4, with the other invariants: several die at once, again and again, while starts take up to a minute."""
    world = new_world(seed, strict=seed % 4 == 3, start_timeout_s=120)
    world.start_controller()
    storm = Storm(world, PARTITIONS)
    storm.deaths(400)
    assert any("die" in done for done in storm.done)
    assert world.inspection.problems == [], storm.done


def test_a_seed_gives_the_same_history_every_time(new_world):
    histories = []
    for _ in range(2):
        world = new_world(5)
        world.start_controller()
        storm = Storm(world, PARTITIONS)
        world.rounds(5)
        storm.steps(STEPS)
        histories.append(world.topics.history)
    assert histories[0] == histories[1]
    assert len(histories[0]) > 20
