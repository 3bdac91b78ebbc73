"""A group whose consumers are of two classes: which are started, and that each number keeps its class."""

from dataclasses import replace
from random import Random

import pytest

from kgs_core.config.packing import PackingSettings
from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load

CLASSES = {"small": {"price_per_hour": 1}, "large": {"price_per_hour": 1.6, "consumer_capacity_bytes_per_s": 240}}
PARTITIONS = [TopicPartition("a", n) for n in range(12)]


@pytest.fixture
def world(new_world):
    world = new_world(0)
    packing = PackingSettings(
        algorithm="keep",
        packing_capacity_bytes_per_s=100,
        consumer_capacity_bytes_per_s=120,
        sentinel_timeout_s=15,
        classes=CLASSES,
    )
    world.options = replace(world.options, packing=packing)
    world.start_controller()
    return world


def at(world, speed, rounds=60):
    world.load = Load(dict.fromkeys(PARTITIONS, float(speed)))
    world.rounds(rounds)
    assert world.inspection.problems == []
    assert world.is_at_rest()
    target = world.view().target.message
    running = {process.consumer: process.consumer_class for process in world.fleet.living()}
    assert running == target.class_of, "each runs as the Target has it"
    return target


def classes(target):
    return sorted(target.class_of[consumer] for consumer in set(target.assignment.values()))


def test_the_cheapest_that_the_load_needs_are_started(world):
    assert classes(at(world, 6)) == ["small"]
    assert classes(at(world, 18)) == ["large", "small"]
    assert classes(at(world, 33)) == ["large", "small", "small"], "another large one is not worth the moves"
    assert classes(at(world, 3, 200)) == ["small"], "worth the moves"


def test_a_number_keeps_its_class_whoever_dies(world):
    random = Random(1)
    at(world, 33)
    for _ in range(6):
        before = world.view().target.message.class_of
        random.choice(world.fleet.living()).kill()
        if random.random() < 0.5:
            world.controller.kill()
            world.start_controller()
        after = at(world, 33).class_of
        assert all(after.get(consumer, name) == name for consumer, name in before.items())


def test_a_replacement_keeps_the_classes(world):
    before = classes(at(world, 33))
    world.want("2", "b")
    world.rounds(120)
    assert classes(at(world, 33)) == before
    assert {process.habits.version for process in world.fleet.living()} == {"2"}


def test_a_class_that_cannot_be_started_is_done_without(world, monkeypatch):
    assert classes(at(world, 6)) == ["small"]
    start = world.fleet.start

    def no_node_for_large(consumer, consumer_class=""):
        run = start(consumer, consumer_class)
        world.fleet.processes[run.handle].fails |= consumer_class == "large"
        return run

    monkeypatch.setattr(world.fleet, "start", no_node_for_large)
    world.load = Load(dict.fromkeys(PARTITIONS, 18.0))
    world.rounds(400)
    target = world.view().target.message
    assert classes(target) == ["small", "small", "small"]
    assert len(target.quarantined) == 1, "one attempt is enough"
    world.controller.kill()
    world.start_controller()
    world.rounds(100)
    assert len(world.view().target.message.quarantined) == 1
