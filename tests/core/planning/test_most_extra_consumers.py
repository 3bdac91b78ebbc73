"""`consumer_weight` as a percentage: of the plans within the bound the one that moves least."""

import math
from random import Random

import pytest

from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load
from kgs_core.planning.plan import Group, make_plan


@pytest.fixture
def drifted():
    """Forty partitions, packed tightly, whose speeds have changed since."""
    random = Random(3)
    before = {TopicPartition("t", n): random.uniform(5, 60) for n in range(40)}
    speeds = {p: min(95.0, max(1.0, s + random.uniform(-25, 25))) for p, s in before.items()}
    return before, speeds


@pytest.fixture
def planned(drifted, packing):
    before, speeds = drifted
    current = make_plan(Load(before), Group(), packing(algorithm="bfd"), lambda: Random(0)).target

    def plan(**settings):
        given = packing(algorithm="search", **settings)
        return make_plan(Load(speeds, earlier=before), Group(current), given, lambda: Random(0))

    return plan


@pytest.fixture
def fewest(planned):
    return planned(consumer_weight="fewest").consumers


@pytest.mark.parametrize("percent", [0, 6, 12, 50])
def test_of_those_within_the_bound_the_one_that_moves_least(planned, fewest, percent):
    plan = planned(consumer_weight=f"{percent:.4f}%")
    most = math.floor(fewest * (1 + percent / 100))
    within = [other for other in plan.alternatives if other.consumers <= most]
    beyond = [other for other in plan.alternatives if other.consumers > most]
    assert plan.consumers <= most
    assert plan.rscore == min(other.rscore for other in within)
    assert any(other.rscore < plan.rscore for other in beyond) or percent == 50, "the bound counts"
    assert f"with at most {percent} % more consumers than {fewest}" in plan.choice


def test_more_consumers_buy_fewer_moves(planned, fewest):
    plans = [planned(consumer_weight=f"{percent:.4f}%") for percent in (0, 12, 50)]
    assert [plan.consumers for plan in plans] == sorted({plan.consumers for plan in plans})
    assert plans[0].consumers == fewest
    assert [plan.rscore for plan in plans] == sorted({plan.rscore for plan in plans}, reverse=True)


def test_a_percentage_of_one_consumer_is_none(planned, fewest):
    """Rounded down."""
    just_too_little = 100 / fewest - 0.1
    assert planned(consumer_weight=f"{just_too_little:.4f}%").consumers == fewest
    assert planned(consumer_weight=f"{just_too_little + 0.2:.4f}%").consumers == fewest + 1
