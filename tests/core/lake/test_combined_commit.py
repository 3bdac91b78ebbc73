"""The combined commit under every fate of every request, under schedules drawn by chance, beside direct ones."""

import random

import pytest

from kgs_core.lake.delta.intent_store import decode_intent
from tests.core.lake.commit_world import Fate, World, Writer, first_entry, make_world_real

ALONE = (("a",), ("b",), ("c",))
SAME = (("a",), ("a",))
"""A zombie and the one that took over."""
OVERLAPPING = (("a", "b"), ("b", "c"), ("a",))
ZOMBIE_BESIDE = (("a",), ("a",), ("b",))
"""Two intents for the same range, before a third writer."""
SHAPES = {"alone": ALONE, "same": SAME, "overlapping": OVERLAPPING, "zombie beside": ZOMBIE_BESIDE}
MODES = {"combined": ("combined",) * 3, "mixed": ("combined", "direct", "auto")}


@pytest.fixture(autouse=True)
def world_time(monkeypatch):
    make_world_real(monkeypatch)


def run(seed, shape, modes, fates=None, until=3):
    world = World(random.Random(seed), fates or {})
    world.entries[0] = first_entry()
    for number, apps in enumerate(shape):
        Writer(world, number, apps, until, modes[number])
    world.run()
    world.check()
    return world


@pytest.mark.parametrize("modes", MODES.values(), ids=MODES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_without_faults_all_of_it_is_committed_and_no_intent_waits(shape, modes):
    for seed in range(30):
        world = run(seed, shape, modes)
        assert all(world.stored()[app] >= 3 for apps in shape for app in apps)
        assert all(decode_intent(data).expected.items() - world.stored().items() for _, data in world.intents.values())


@pytest.mark.parametrize("fate", Fate)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_each_fate_of_each_request(shape, fate):
    """What lives gets to its end; of the killed, the batch is in the table once, or not at all."""
    for seed in range(3):
        steps = run(seed, shape, MODES["combined"]).steps
        for at in range(1, steps + 1):
            world = run(seed, shape, MODES["combined"], {at: fate})
            living = {app for writer in world.writers if not writer.was_killed for app in writer.apps}
            assert all(world.stored().get(app, 0) >= 3 for app in living)


@pytest.mark.slow
@pytest.mark.parametrize("modes", MODES.values(), ids=MODES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_many_faults_under_many_schedules(shape, modes):
    for seed in range(250):
        rng = random.Random(seed)
        fates = {rng.randrange(1, 80): rng.choice(list(Fate)) for _ in range(rng.randrange(1, 6))}
        run(seed, shape, modes, fates)
