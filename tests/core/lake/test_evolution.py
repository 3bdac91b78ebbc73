"""Commits of all ways, and new columns beside them: every fate of every request, under schedules drawn by chance."""

import random

import pytest

from kgs_core.lake.files.intent_store import decode_intent
from tests.core.lake.commit_world import Fate, World, Writer, first_entry, make_world_real

OLD, ONE, OTHER, BOTH = (), ("n",), ("m",), ("n", "m")
"""New columns that a writer's records have; the first has the configuration of before."""
CASES = {
    "alone": [(("a",), OLD), (("b",), OLD), (("c",), OLD)],
    "a zombie and the one that took over": [(("a",), OLD), (("a",), OLD)],
    "overlapping": [(("a", "b"), OLD), (("b", "c"), OLD), (("a",), OLD)],
    "two intents for the same range, before a third writer": [(("a",), OLD), (("a",), OLD), (("b",), OLD)],
    "old beside new": [(("a",), OLD), (("b",), ONE)],
    "two that want the same": [(("a",), ONE), (("b",), ONE)],
    "two that want others": [(("a",), ONE), (("b",), OTHER)],
    "a zombie beside its successor": [(("a",), OLD), (("a",), BOTH)],
    "three": [(("a", "b"), OLD), (("b", "c"), ONE), (("a",), BOTH)],
}
MODES = {"direct": ("direct",) * 3, "combined": ("combined",) * 3, "mixed": ("combined", "direct", "auto")}


@pytest.fixture(autouse=True)
def world_time(monkeypatch):
    make_world_real(monkeypatch)


def run(seed, case, modes, fates=None):
    world = World(random.Random(seed), fates or {})
    world.entries[0] = first_entry()
    for number, (apps, more) in enumerate(case):
        Writer(world, number, apps, 3, modes[number], more=more)
    world.run()
    world.check()
    living = [(w, more) for w, (_, more) in zip(world.writers, case, strict=True) if not w.was_killed]
    for writer, more in living:
        assert all(world.stored().get(app, 0) >= 3 for app in writer.apps)
        assert set(more) <= set(world.columns())
    assert len(set(world.columns())) == len(world.columns())
    return world


@pytest.mark.parametrize("modes", MODES.values(), ids=MODES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_without_faults_all_of_it_is_committed_and_every_column_comes_once_in_an_entry_of_its_own(case, modes):
    for seed in range(30):
        world = run(seed, case, modes)
        waiting = [decode_intent(data).expected.items() for _, data in world.intents.values()]
        assert all(expected - world.stored().items() for expected in waiting), "no intent waits"
        changes = [data for number, data in world.entries.items() if number and b"metaData" in data]
        assert len(changes) == len(world.columns()) - 1
        assert not any(b'"add"' in data or b'"txn"' in data for data in changes)


@pytest.mark.parametrize("fate", Fate)
@pytest.mark.parametrize("modes", MODES.values(), ids=MODES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_fate_of_each_request(case, modes, fate):
    """Of the killed, the batch is in the table once, or not at all; and columns that it gave stay."""
    steps = run(0, case, modes).steps
    for at in range(1, steps + 1):
        run(0, case, modes, {at: fate})


@pytest.mark.slow
@pytest.mark.parametrize("modes", MODES.values(), ids=MODES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_many_faults_under_many_schedules(case, modes):
    for seed in range(120):
        rng = random.Random(seed)
        fates = {rng.randrange(1, 90): rng.choice(list(Fate)) for _ in range(rng.randrange(1, 6))}
        run(seed, case, modes, fates)
