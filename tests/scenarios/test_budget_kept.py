"""A budget of moves over hours of a restless load, with controllers that are killed."""

from random import Random

import pytest

from kgs_core.group.protocol import Received, Target
from kgs_core.planning.rebalance_budget import HOUR_MS
from kgs_core.planning.triggers import Reason
from tests.scenarios.transcript import Scenario

pytestmark = pytest.mark.slow

BUDGET = 1.5


def targets(world):
    found = [entry.message for _, entry in world.topics.journal if isinstance(entry, Received)]
    return [message for message in found if isinstance(message, Target)]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_what_nothing_forces_stays_within_the_budget(seed):
    """Every Target is compared with all that were written in the hour before it, not with what it remembers."""
    random, scenario = Random(seed), Scenario()

    def play(line):
        return list(scenario.play(line))

    for line in (f"group look=30 budget={BUDGET}", "speeds a=50 b=50 c=50 d=50", "controller"):
        play(line)
    said = []
    for _ in range(50):
        play("speeds " + " ".join(f"{name}={random.randrange(5, 95)}" for name in "abcd"))
        said += play("rounds 100")
        if random.random() < 0.3:
            play("kill controller")
            play("controller")
    written = targets(scenario.world)
    within, beyond = 0, 0
    for target in written:
        before = [one.rscore for one in written if target.time_ms - HOUR_MS < one.time_ms <= target.time_ms]
        if target.reason == Reason.TIMEOUT and target.rscore > 0:
            assert sum(before) <= BUDGET + 1e-6
            within += 1
        elif sum(before) > BUDGET:
            beyond += 1
    assert within, "some were made"
    assert beyond, "what was forced was made, too"
    assert [line for line in said if "held back" in line]
