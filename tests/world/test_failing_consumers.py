"""Consumers that join, read and then end by an error of their own, again and again, with the default settings."""

from collections import Counter
from random import Random

import pytest

from kgs_core.config.membership import MembershipSettings
from kgs_core.config.packing import PackingSettings
from kgs_core.group.controller.state import Options
from kgs_core.group.membership.member import MembershipTiming
from kgs_core.group.protocol import Target
from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load
from tests.world.consumers import Habits
from tests.world.world import World

PARTITIONS = [TopicPartition("a", n) for n in range(8)]
JOIN_S, LIVE_S, LONG_S = 120, 16, 900


@pytest.fixture
def world():
    """Four readers of two partitions each, and a spare; Spark takes 12 s."""
    membership = MembershipSettings()
    packing = PackingSettings(packing_capacity_bytes_per_s=100, consumer_capacity_bytes_per_s=120)
    pace = MembershipTiming(membership.heartbeat_s, membership.suspect_after_s, 300)
    options = Options(packing, membership, lambda: Random(0))
    world = World(options, Habits(pace, starts_in_s=12.0), Random(0))
    world.load = Load(dict.fromkeys(PARTITIONS, 45.0))
    world.start_controller()
    world.rounds(JOIN_S)
    return world


class Trouble:
    """Ends whoever the fault is in, so long after it began to read."""

    def __init__(self, world, is_hit):
        self.world, self.is_hit = world, is_hit
        self.since, self.ends = {}, Counter()
        self.quarantined, self.unread = set(), Counter()
        self.targets = self.count_targets()

    def count_targets(self):
        return sum(isinstance(one.message, Target) for one in self.world.topics.history)

    def rounds(self, count):
        for now in range(count):
            self.world.round()
            for process in self.world.fleet.living():
                if self.is_hit(process) and now - self.since.setdefault(process.handle, now) == LIVE_S:
                    process.fail("5 rounds failed, last: boom")
                    self.ends[process.consumer] += 1
            self.quarantined |= self.world.controller.state.said.quarantined
            owned = {tp for process in self.world.fleet.living() for tp in process.owned}
            self.unread.update(set(PARTITIONS) - owned)
        return self.count_targets() - self.targets


def test_a_number_that_keeps_failing_is_quarantined_and_its_partitions_are_read_by_others(world):
    trouble = Trouble(world, lambda process: process.consumer == 2 and process.membership is not None)
    targets = trouble.rounds(LONG_S)
    assert trouble.quarantined == {2}
    # Three in a row, and one try each 320 s after that, as a spare or a reader
    assert trouble.ends[2] <= 3 + LONG_S // 320
    assert targets <= 2 * trouble.ends[2] + 2
    assert world.is_at_rest()
    assert max(trouble.unread.values(), default=0) < 60
    assert world.inspection.problems == []


@pytest.mark.slow
def test_a_partition_that_ends_whoever_reads_it_does_not_shake_the_group_for_ever(world):
    """It goes on to the next number, again and again; what is not packed with it is read all the time."""
    poison = PARTITIONS[0]
    packed_with_it = {tp for process in world.fleet.living() if poison in process.owned for tp in process.owned}
    trouble = Trouble(world, lambda process: poison in process.owned)
    first, second = trouble.rounds(LONG_S), trouble.rounds(LONG_S)
    ends = sum(trouble.ends.values())
    without_a_brake = 2 * LONG_S // (LIVE_S + 3)  # it was as many as that: a spare takes over within three seconds
    assert ends < without_a_brake / 2
    assert second - first < first, "less and less"
    assert trouble.unread.keys() <= packed_with_it
    assert trouble.quarantined
    assert world.inspection.problems == []
