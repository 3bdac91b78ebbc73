"""Groups for storms: short times, so that every timeout passes within a history."""

from random import Random

import pytest

from kgs_core.config.membership import MembershipSettings
from kgs_core.config.packing import PackingSettings
from kgs_core.group.controller.state import Options
from kgs_core.group.membership.member import MembershipTiming
from tests.world.consumers import Habits
from tests.world.world import World


@pytest.fixture
def new_world():
    def build(seed, *, strict=False, apply="auto", idle_after_s=None, spares=1, **more):
        short = {"suspect_after_s": 5, "start_timeout_s": 8}
        membership = MembershipSettings(strict_handover=strict, **(short | more))
        packing = PackingSettings(
            algorithm="mwf",
            packing_capacity_bytes_per_s=100,
            consumer_capacity_bytes_per_s=120,
            spare_consumers=spares,
            idle_after_s=idle_after_s,
            sentinel_timeout_s=15,
            apply=apply,
        )
        habits = Habits(MembershipTiming(membership.heartbeat_s, membership.suspect_after_s, batch_timeout_s=300))
        return World(Options(packing, membership, lambda: Random(0)), habits, Random(seed))

    return build
