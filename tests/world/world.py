"""The whole group at one moment, and how time goes on: in fair rounds, or by small steps in any order."""

from collections.abc import Callable
from dataclasses import replace

from kgs_core.group.controller.desired_state import is_settled
from kgs_core.group.controller.state import Options
from kgs_core.group.protocol import DesiredState, DesiredVersion, RunState
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.transitions import State
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.packing import RandomSource
from kgs_core.planning.load import Load
from tests.world.chance import NO_TROUBLE, Chance
from tests.world.consumers import Habits, SimConsumer
from tests.world.controllers import SimController
from tests.world.fleet import SimFleet
from tests.world.idleness import Powers
from tests.world.inspection import Inspection
from tests.world.topics import Clock, Topics

STEP_S = 1.0
"""How long a round lasts: everybody has one turn."""


class World:
    """One group, its topics and everybody in it.

    Attributes:
        load: what the monitor measures; None: it is down, and what it said last grows old.
        controllers: all that were ever started, the earliest first.
        inspection: looks after every turn whether all that must hold does hold.
    """

    def __init__(self, options: Options, habits: Habits, random: RandomSource) -> None:
        self.options = options
        self.clock = Clock()
        self.topics = Topics(self.clock)
        self.chance = Chance(random)
        self.fleet = SimFleet(self.topics, self.chance, habits)
        self.load: Load | None = None
        self.controllers: list[SimController] = []
        self.inspection = Inspection(options, self.topics, self.fleet)

    def start_controller(self, *, launches: bool = True, until_done: bool = False) -> SimController:
        """One more; those that are there know nothing of it."""
        options = replace(self.options, launches=launches, until_done=until_done)
        controller = SimController(options, self.topics, self.fleet, self.chance)
        controller.onlooker = self.look
        self.controllers.append(controller)
        return controller

    @property
    def controller(self) -> SimController:
        return self.controllers[-1]

    def set_desired_state(self, state: RunState) -> None:
        self.topics.append(DesiredState(state, "somebody", self.clock.ms))

    def ask_for_plan(self) -> None:
        """`kgs plan --apply`, which is refused while people want the group paused or stopped."""
        if self.view().run_state is RunState.RUNNING:
            self.topics.append(DesiredState(RunState.RUNNING, "somebody", self.clock.ms, apply_ms=self.clock.ms))

    def want(self, version: str, config_hash: str) -> None:
        """Somebody rolls out a version: consumers that are started from now on have it."""
        self.fleet.habits = replace(self.fleet.habits, version=version, config_hash=config_hash)
        self.topics.append(DesiredVersion(version, config_hash, "somebody", self.clock.ms))

    def measured(self) -> Load | None:
        load = self.load
        if load is not None and self.options.packing.idle_after_s is not None:
            load = self.topics.measured(load)
        return None if load is None else replace(load, measurement_offset=self.clock.ms)

    def unread(self) -> set[TopicPartition]:
        """Partitions with records that no consumer has read."""
        partitions = self.load.write_speeds().keys() if self.load else set()
        written, read = self.topics.written, self.topics.read
        return {p for p in partitions if read.get(p, 0) < written.get(p, 0)}

    def sleeps(self) -> bool:
        """Whether the newest Target lets everybody sleep."""
        target = self.view().target
        return target is not None and target.message.idle is not None

    def round(self) -> None:
        """A second goes by, and everybody has a turn."""
        self.clock.now += STEP_S
        for process in self.fleet.living():
            process.turn()
            self.look()
        for controller in self.controllers:
            controller.turn(self.measured())
            self.look()

    def rounds(self, count: int) -> None:
        for _ in range(count):
            self.round()

    def until(self, is_so: Callable[[], bool], most: int, go_on: Callable[[], object] | None = None) -> int:
        """Rounds until something is so: how many it took; `go_on` makes one.

        Raises:
            TimeoutError: it is not so after `most` rounds.
        """
        for count in range(most + 1):
            if is_so():
                return count
            (go_on or self.round)()
        living = sum(controller.lives for controller in self.controllers)
        raise TimeoutError(
            f"not so after {most} rounds, at {self.clock.now:g} s: {living} controllers live, at rest: "
            f"{self.is_at_rest()}, unread: {self.unread()}, newest Target: {self.view().target}"
        )

    def look(self) -> None:
        """See whether all that must hold does."""
        living = [controller for controller in self.controllers if controller.lives]
        decides = any(not controller.is_frozen and controller.state.options.launches for controller in living)
        self.inspection.look([controller.state for controller in living], Powers(decides, self.load is not None))

    def heal(self) -> None:
        """No more trouble; everybody that is frozen goes on."""
        self.chance.trouble = NO_TROUBLE
        for process in self.fleet.living():
            process.is_frozen = False
            process.stopped.clear()
        for controller in self.controllers:
            controller.is_frozen = False

    def reading(self, consumer: ConsumerId) -> SimConsumer:
        """The latest living process of a consumer.

        Raises:
            LookupError: there is none.
        """
        living = self.fleet.of(consumer)
        if not living:
            raise LookupError(f"no process of consumer {consumer} lives")
        return living[-1]

    def is_at_rest(self) -> bool:
        """Whether all is as it shall be, by the truth: nobody has anything to do, and each partition its one reader.

        An older controller that has nothing to write does not notice that it has no right to write any more.
        """
        living = [controller.state for controller in self.controllers if controller.lives]
        processes = self.fleet.living()
        if not living or not all(state.name is State.SENTINEL and is_settled(state) for state in living):
            return False
        target = living[-1].target
        if target is None or not all(process.is_at_rest for process in processes):
            return False
        share = {c: frozenset(p for p, o in target.assignment.items() if o == c) for c in target.consumers}
        partitions = self.load.write_speeds().keys() if self.load else set()
        if target.idle is not None and not self.unread():
            partitions = set()
        return sorted((p.consumer, p.owned) for p in processes) == sorted(share.items()) and (
            target.assignment.keys() == partitions
        )

    def view(self) -> GroupView:
        """What one who reads all topics now would see."""
        dead = [process.member.incarnation for process in self.fleet.processes.values() if not process.lives]
        return GroupView().take_all(self.topics.everything(), self.clock.now).bury(dead)
