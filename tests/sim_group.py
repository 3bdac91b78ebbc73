"""A simulated group whose time goes by while somebody polls its topics: what runs and sensors are tested on."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random

from kgs_core.config.membership import MembershipSettings
from kgs_core.config.packing import PackingSettings
from kgs_core.group.controller.state import Options
from kgs_core.group.invariants.assignments import check_single_owner
from kgs_core.group.membership.member import MembershipTiming
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.planning.load import Load
from kgs_core.runtime.rebalance_ports import Clocks, RunPorts
from tests.world.chance import Chance
from tests.world.consumers import Habits
from tests.world.fleet import SimFleet
from tests.world.ports import SimControllerWriter, SimGroupTopicReader
from tests.world.topics import TARGETS, Clock, Topics

START_S = 1_000_000.0
LIMIT_S = 3600.0


def tp(name: str) -> TopicPartition:
    return TopicPartition(name, 0)


def packing_of(**changes) -> PackingSettings:
    """Capacity 100, rebalance above 120, no spare."""
    plain = {
        "algorithm": "mwf",
        "packing_capacity_bytes_per_s": 100,
        "consumer_capacity_bytes_per_s": 120,
        "spare_consumers": 0,
    }
    return PackingSettings(**{**plain, **changes})


def options(packing=None, **membership) -> Options:
    return Options(packing_of(**(packing or {})), MembershipSettings(**membership), lambda: Random(0))


def careless(select):
    """`select_target`, but its Targets leave partition `a` out."""

    def forgetful(state, now):
        found = select(state, now)
        if found.target is None:
            return found
        short = {p: c for p, c in found.target.assignment.items() if p != tp("a")}
        return replace(found, target=replace(found.target, assignment=short))

    return forgetful


class SimGroup:
    """Topics, fleet and monitor of one group.

    Attributes:
        measurements: offset -> what was measured, and when.
        events: called when time goes by; one that returns True is dropped.
        is_there: whether the topics exist.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.clock = Clock()
        self.clock.now = START_S
        self.topics = Topics(self.clock)
        self.chance = Chance(Random(1))
        pace = MembershipTiming(options.membership.heartbeat_s, options.membership.suspect_after_s, 300.0)
        self.fleet = SimFleet(self.topics, self.chance, Habits(pace))
        self.measurements: dict[int, Load] = {}
        self.last_read = -1
        self.events = []
        self.is_there = True
        self.closed = 0
        self.measured_now = 0

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.clock.now, lambda: self.clock.now)

    @property
    def ports(self) -> RunPorts:
        return RunPorts(self, self.fleet, self, self.clocks)

    @contextmanager
    def connect(self, *_: object) -> Iterator[RunPorts]:
        """As a resource is given them."""
        try:
            yield self.ports
        finally:
            self.closed += 1

    # The monitor

    def publish(self, **speeds: float | None) -> int:
        """One more measurement; None: not known."""
        known = {tp(name): float(speed) for name, speed in speeds.items() if speed is not None}
        unknown = frozenset(tp(name) for name, speed in speeds.items() if speed is None)
        offset = max(self.measurements, default=-1) + 1
        load = Load(known, unknown, measurement_offset=offset, read_at=self.clock.now)
        if self.options.packing.idle_after_s is not None:
            load = self.topics.measured(load)
        self.measurements[offset] = load
        return offset

    def at(self, offset: int | None) -> Load | None:
        wanted = max(self.measurements, default=None) if offset is None else offset
        if wanted not in self.measurements:
            return None
        self.last_read = wanted
        return self.measurements[wanted].as_of(self.clock.now)

    def newest(self) -> Load | None:
        newest = max(self.measurements, default=-1)
        return self.at(newest) if newest > self.last_read else None

    def measure(self) -> Load:
        self.measured_now += 1
        self.go_by(30.0)
        return replace(self.measurements[max(self.measurements)], measurement_offset=None)

    # The topics

    def reader(self) -> "SimReader | None":
        return SimReader(self) if self.is_there else None

    def controller(self) -> "tuple[SimReader, SimControllerWriter]":
        self.is_there = True
        return SimReader(self), SimControllerWriter(self.topics, self.chance)

    # The world

    def start(self, *consumers: int) -> None:
        for number in consumers:
            self.fleet.start(ConsumerId(number))

    def go_by(self, seconds: float) -> None:
        """Everybody has a turn at least once in so much time."""
        end = self.clock.now + seconds
        while self.clock.now < end:
            self.clock.now = min(end, self.clock.now + 0.5)
            assert self.clock.now < START_S + LIMIT_S, "the group did not get there"
            for process in self.fleet.living():
                process.turn()
            self.events = [event for event in self.events if not event()]
            assert check_single_owner({p.member.incarnation: p.owned for p in self.fleet.living()}) == ()

    def target(self):
        return self.topics.log(TARGETS)[-1].message if self.topics.log(TARGETS) else None

    def owners(self) -> dict[str, int]:
        return {p.topic: process.consumer for process in self.fleet.living() for p in process.owned}

    def history(self) -> list[str]:
        """Kinds of all records but heartbeats, in their order."""
        names = [type(received.message).__name__ for received in self.topics.history]
        return [name for name in names if name != "Heartbeat"]


class SimReader(SimGroupTopicReader):
    """A reader that lets time go by while it waits."""

    def __init__(self, group: SimGroup) -> None:
        super().__init__(group.topics, group.chance)
        self._group = group

    def poll(self, timeout_s: float):
        self._group.go_by(timeout_s)
        return super().poll(timeout_s)
