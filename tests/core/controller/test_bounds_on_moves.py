"""Windows of quiet and `max_extra_consumers_percent`, where they count: in what is planned and written.

Mutants tried by hand, each of which at least one test here does not survive: a window that is not asked; one that is
always taken to be open; one that holds back forced moves, too; a bound that is not asked, that is rounded up, that is
taken off instead of added; the plan with the fewest consumers instead of the one that moves least; the bound of the
wrong percentage.
"""

import math
from dataclasses import replace
from random import Random

import pytest

from kgs_core.controller.target_selection import select_target
from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load
from kgs_core.planning.plan import Group, make_plan
from kgs_core.planning.triggers import Reason
from tests.core.controller.two_readers import measured

NOW_S = 400.0
"""Later than a better packing is looked for; the clock says 01:30 UTC."""


class TestWindowsOfQuiet:
    @pytest.fixture
    def looked(self, synchronized, packing):
        """What is due by these windows and speeds, so many seconds after 01:30."""

        def build(windows, after_s=0.0, **speeds):
            settings = packing(forced_moves_only_utc=windows)
            state = synchronized(packing=settings)
            state = replace(state, wall_ms=(90 * 60 - NOW_S) * 1000.0, measured_at=NOW_S + after_s)
            return select_target(replace(state, measured=measured(**speeds)), NOW_S + after_s).target

        return build

    def test_outside_a_better_packing_is_looked_for(self, looked):
        for windows in ([], ["01:31-02:00"], ["00:00-01:30"]):
            assert looked(windows, a=30, b=20).reason == Reason.TIMEOUT

    def test_inside_it_is_not(self, looked):
        for windows in (["01:30-01:31"], ["00:00-00:10", "01:00-02:00"], ["23:00-02:00"]):
            assert looked(windows, a=30, b=20) is None

    def test_when_the_window_closes_it_is_looked_for_at_once(self, looked):
        assert looked(["01:30-01:31"], 59, a=30, b=20) is None
        assert looked(["01:30-01:31"], 60, a=30, b=20).reason == Reason.TIMEOUT

    def test_inside_what_is_forced_is_done(self, looked):
        target = looked(["01:00-02:00"], a=80, b=60, c=30)
        assert "partition without owner: c:0" in target.reason


class TestMostExtraConsumers:
    @pytest.fixture
    def drifted(self):
        """Forty partitions, packed tightly, whose speeds have changed since."""
        random = Random(3)
        before = {TopicPartition("t", n): random.uniform(5, 60) for n in range(40)}
        speeds = {p: min(95.0, max(1.0, s + random.uniform(-25, 25))) for p, s in before.items()}
        return before, speeds

    @pytest.fixture
    def planned(self, drifted, packing):
        before, speeds = drifted
        current = make_plan(Load(before), Group(), packing(algorithm="bfd"), lambda: Random(0)).target

        def plan(**settings):
            given = packing(algorithm="search", **settings)
            return make_plan(Load(speeds, earlier=before), Group(current), given, lambda: Random(0))

        return plan

    @pytest.fixture
    def fewest(self, planned):
        return planned(consumer_weight="fewest").consumers

    @pytest.mark.parametrize("percent", [0, 6, 12, 50])
    def test_of_those_within_the_bound_the_one_that_moves_least(self, planned, fewest, percent):
        plan = planned(max_extra_consumers_percent=percent)
        most = math.floor(fewest * (1 + percent / 100))
        within = [other for other in plan.alternatives if other.consumers <= most]
        beyond = [other for other in plan.alternatives if other.consumers > most]
        assert plan.consumers <= most
        assert plan.rscore == min(other.rscore for other in within)
        assert any(other.rscore < plan.rscore for other in beyond) or percent == 50, "the bound counts"
        assert f"with at most {percent} % more consumers than {fewest}" in plan.choice

    def test_no_more_than_the_fewest(self, planned, fewest):
        assert planned(max_extra_consumers_percent=0).consumers == fewest

    def test_more_consumers_buy_fewer_moves(self, planned):
        plans = [planned(max_extra_consumers_percent=percent) for percent in (0, 12, 50)]
        assert [plan.consumers for plan in plans] == sorted({plan.consumers for plan in plans})
        assert [plan.rscore for plan in plans] == sorted({plan.rscore for plan in plans}, reverse=True)

    def test_a_percentage_of_one_consumer_is_none(self, planned, fewest):
        """Rounded down."""
        just_too_little = 100 / fewest - 0.1
        assert planned(max_extra_consumers_percent=just_too_little).consumers == fewest
        assert planned(max_extra_consumers_percent=just_too_little + 0.2).consumers == fewest + 1

    def test_the_bound_replaces_the_price_of_a_consumer(self, planned):
        cheap, dear = (
            planned(max_extra_consumers_percent=12, consumer_weight=consumer_weight) for consumer_weight in (0.35, 1000)
        )
        assert cheap.target == dear.target
