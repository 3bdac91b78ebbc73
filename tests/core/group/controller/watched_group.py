"""A group that is looked after as Dagster does it: observers without the right to write, and a run for each change."""

from dataclasses import dataclass, field
from random import Random

from kgs_core.errors import PortError
from kgs_core.group.controller.observer import GroupObserver
from kgs_core.group.controller.state import Options
from kgs_core.group.membership.member import MembershipTiming
from kgs_core.group.view.events import FleetSeen, RecordsRead
from kgs_core.group.view.reconcile import converged
from kgs_core.planning.load import Load
from kgs_core.runtime.rebalance_ports import Reference
from tests import sim_group
from tests.world.consumers import Habits
from tests.world.controllers import SimController
from tests.world.ports import SimGroupTopicReader
from tests.world.world import World

TICK_S = 40.0
GAP_S = 5.0
RUN_STARTS_IN_S = 3.0


def options(spares=0, **membership):
    return sim_group.options({"spare_consumers": spares}, **membership)


class Run(SimController):
    """A rebalance run: knows from its reference how old the newest report was."""

    def __init__(self, world, reference, asked_at):
        super().__init__(options_of_run(world.options), world.topics, world.fleet, world.chance)
        self.reference, self.asked_at = reference, asked_at

    def _do(self, command):
        answer = super()._do(command)
        return (
            RecordsRead(answer.messages, self.reference.age_of(answer.messages))
            if isinstance(answer, RecordsRead)
            else answer
        )


def options_of_run(options):
    return Options(options.packing, options.membership, options.new_random, launches=False, until_done=True)


@dataclass
class WatchedGroup:
    """`rounds` lets seconds go by. Every observer lives for one tick and leaves nothing behind."""

    world: World
    asked: list = field(default_factory=list)
    stopped: list = field(default_factory=list)
    excused: set = field(default_factory=set)
    watch: GroupObserver | None = None
    run: Run | None = None

    def __post_init__(self):
        self.reader = None
        self.tick_ends = self.next_tick = 0.0
        self.due_run = None
        # A run that ends by what it has just written is to be asked whom it suspects, too
        self.world.look = lambda: self.world.inspection.look(
            [c.state for c in self.world.controllers if c.lives or c is self.run]
        )

    @classmethod
    def of(cls, options, seed=0, **speeds):
        pace = MembershipTiming(options.membership.heartbeat_s, options.membership.suspect_after_s, batch_timeout_s=300)
        group = cls(World(options, Habits(pace), Random(seed)))
        group.speeds(**speeds)
        return group

    def speeds(self, **speeds):
        self.world.load = Load({sim_group.tp(name): float(speed) for name, speed in speeds.items()})

    @property
    def now(self):
        return self.world.clock.now

    def rounds(self, count):
        for _ in range(count):
            self.round()

    def round(self):
        self._begin_run()
        self.world.round()
        if self.run is not None and not self.run.lives:
            self.run = None
        self._observe()
        assert self.world.inspection.problems == []

    def until(self, is_so, most=200):
        for count in range(most):
            if is_so():
                return count
            self.round()
        raise AssertionError(f"not so after {most} rounds; asked: {self.asked[-5:]}")

    def observer(self, ahead_ms=0):
        """One that has read everything, by a clock that may be ahead of the brokers'."""
        clock = self.world.clock
        return GroupObserver.begin(self.world.options, self.world.topics.everything(), clock.now, clock.ms + ahead_ms)

    def settle(self, most=200):
        return self.until(self.is_settled, most)

    def is_settled(self):
        view = self.world.view()
        if view.target is None or self.world.load is None:
            return False
        target = view.target.message
        return (
            target.assignment.keys() == self.world.load.write_speeds().keys()
            and converged(view, target.assignment, target.consumers)
            and self.run is None
        )

    def readers(self):
        return sorted({process.consumer for process in self.world.fleet.living() if process.owned})

    def restart(self):
        """Dagster is killed: the observer is gone, and so is what it was about to ask for."""
        self.watch, self.due_run = None, None
        self.next_tick = self.now

    def _begin_run(self):
        if self.due_run is not None and self.run is None and self.now >= self.due_run.asked_at + RUN_STARTS_IN_S:
            self.run = Run(self.world, self.due_run.reference, self.due_run.asked_at)
            self.world.controllers.append(self.run)
            self.due_run = None

    def _observe(self):
        if self.watch is None:
            if self.now < self.next_tick:
                return
            self._begin_watch()
        watch, now = self.watch, self.now
        if watch is None:
            return
        watch = watch.read(self.reader.poll(0.0), now).observed(self._fleet_seen(watch), now)
        if (measured := self.world.measured()) is not None:
            watch = watch.observed(measured, now)
        self.watch, sight = watch.recommend(now)
        is_held = self.run is not None or self.due_run is not None
        if sight.reason and is_held:
            self.watch, sight = watch.recommend(now, target_stands=self.run is not None)
        self._act(sight, is_held)
        if now >= self.tick_ends:
            self._end_tick()

    def _begin_watch(self):
        self.reader = SimGroupTopicReader(self.world.topics, self.world.chance)
        try:
            messages = self.reader.read_to_end()
        except PortError:
            return
        self.watch = GroupObserver.begin(self.world.options, messages, self.now, self.world.clock.ms)
        self.tick_ends = self.now + TICK_S

    def _act(self, sight, is_held):
        for handle in (*sight.unwanted, *sight.overdue):
            self.stopped.append(handle)
            self.world.fleet.stop(handle)
        self.excused.update(sight.unwanted)
        if sight.reason and not is_held:
            newest = self.watch.newest_report
            age_s = self.now - newest.at if newest else 0.0
            self.due_run = Asked(Reference(1, newest.offset if newest else None, age_s), self.now)
            self.asked.append((self.now, sight.reason))
        for consumer in sight.launch:
            try:
                self.world.fleet.start(consumer)
            except PortError:
                continue
        if sight.launch or (sight.reason and not is_held):
            self._end_tick()

    def _end_tick(self):
        self.watch = None
        self.next_tick = self.now + GAP_S

    def _fleet_seen(self, watch):
        fleet = self.world.fleet
        runs = [run for run in fleet.runs() if not (run.is_over and run.handle in self.excused)]
        members = watch.state.view.members
        dead = [i for i, m in members.items() if m.report is not None and fleet.is_dead(m.report.process)]
        return FleetSeen(runs, frozenset(dead))


@dataclass(frozen=True)
class Asked:
    """A run that was asked for and has not begun."""

    reference: Reference
    asked_at: float
