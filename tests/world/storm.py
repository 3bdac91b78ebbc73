"""Chaos: small steps of everybody in any order, and now and then something that goes wrong. Replayed by its seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kgs_core.group.protocol import RunState
from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load
from tests.world.chance import FaultRates
from tests.world.consumers import SimConsumer
from tests.world.controllers import SimController
from tests.world.world import World

TROUBLE = FaultRates(
    late=0.3,
    doubled=0.1,
    report_lost=0.05,
    report_unsure=0.05,
    write_lost=0.05,
    write_unsure=0.05,
    write_hangs=0.05,
    write_torn=0.05,
    unanswered=0.05,
    start_refused=0.05,
    start_fails=0.1,
)
_LONGEST_PAUSE_S = 0.6
_MOST_SPEED = 90.0
_MOST_CONTROLLERS = 2
_MOST_TWINS = 2
_MOST_DEATHS = 4
_SLOWEST_START_S = 60.0


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """Something that goes wrong, `weight` times as often as others."""

    name: str
    weight: int
    do: Callable[[], None]


class Storm:
    """Drives a world through small steps.

    Attributes:
        done: what went wrong, in order; for a person who looks at a failure.
    """

    def __init__(
        self,
        world: World,
        partitions: int,
        *,
        likelihood: float = 0.04,
        trouble: FaultRates = TROUBLE,
        favours: str = "",
    ) -> None:
        """A storm that has not begun.

        Args:
            world: a group; its load is changed.
            partitions: how many there are at most.
            likelihood: of mischief at each step.
            trouble: what else goes wrong.
            favours: mischief with this word in its name comes ten times as often.
        """
        self._world = world
        self._chance = world.chance
        self._likelihood = likelihood
        self._trouble = trouble
        self._names = [TopicPartition("t", number) for number in range(partitions)]
        self._desired = RunState.RUNNING
        self.done: list[str] = []
        world.load = Load({name: self._speed() for name in self._names[: partitions // 2 + 1]})
        self._mischief = [
            one
            for one in self._all_mischief()
            for _ in range(one.weight * (10 if favours and favours in one.name else 1))
        ]

    def steps(self, count: int) -> None:
        """So many small steps; after each everything is looked at."""
        self._world.chance.trouble = self._trouble
        for _ in range(count):
            self._step()
            self._world.look()

    def deaths(self, rounds: int) -> None:
        """So many fair rounds in which several die at once, and who is started may take long to join."""
        chance, world = self._chance, self._world
        for _ in range(rounds):
            if chance.strikes(self._likelihood):
                starts_in_s = chance.one_of([1.0, chance.between(1.0, _SLOWEST_START_S)])
                world.fleet.habits = replace(world.fleet.habits, starts_in_s=starts_in_s)
            if chance.strikes(self._likelihood):
                self.done.append(f"{world.clock.now:.1f} several die at once")
                for _ in range(1 + chance.number(_MOST_DEATHS)):
                    self._kill_consumer()
            if chance.strikes(self._likelihood / 2):
                self._change_speeds()
            world.round()

    def calm(self) -> None:
        """Everything that people and machines can mend is mended."""
        world = self._world
        world.heal()
        world.fleet.is_blind = False
        world.set_desired_state(RunState.RUNNING)
        world.load = replace(world.load, unknown=frozenset()) if world.load else Load({})

    def calm_round(self) -> None:
        """A fair round in which somebody controls the group for good: whoever fenced the last one may have ended."""
        world = self._world
        if not any(controller.lives and not controller.state.options.until_done for controller in world.controllers):
            world.start_controller()
        world.round()

    def _step(self) -> None:
        world, chance = self._world, self._chance
        if chance.strikes(self._likelihood):
            mischief = chance.one_of(self._mischief)
            self.done.append(f"{world.clock.now:.1f} {mischief.name}")
            mischief.do()
        elif chance.strikes(0.2):
            world.clock.now += chance.between(0.0, _LONGEST_PAUSE_S)
        elif chance.strikes(0.5) and world.controllers:
            chance.one_of(self._controllers() or world.controllers).nudge(world.measured())
        elif world.fleet.living():
            process = chance.one_of(world.fleet.living())
            chance.one_of((process.turn, process.join, process.receive, process.act, process.report, process.turn))()

    def _all_mischief(self) -> list[InjectedFault]:
        world = self._world
        asks = world.options.packing.apply == "forced_only"
        sleeps = world.options.packing.idle_after_s is not None
        return [
            *([InjectedFault("nobody writes, or all do again", 12, self._change_quiet)] if sleeps else []),
            *([InjectedFault("ask for what the packer wants", 12, world.ask_for_plan)] if asks else []),
            InjectedFault("kill a consumer", 3, self._kill_consumer),
            InjectedFault("freeze a consumer, or let it go on", 5, lambda: self._freeze(world.fleet.living())),
            InjectedFault("ask a consumer to end", 1, self._end_consumer),
            InjectedFault("start a twin", 1, self._start_twin),
            InjectedFault("kill a controller", 3, self._kill_controller),
            InjectedFault("freeze a controller, or let it go on", 3, lambda: self._freeze(self._controllers())),
            InjectedFault("start a controller", 8, self._start_controller),
            InjectedFault("change all speeds", 12, self._change_speeds),
            InjectedFault("lose a speed, or know it again", 2, self._lose_speed),
            InjectedFault("add or remove a partition", 4, self._change_partitions),
            InjectedFault("change the desired state", 2, self._change_desired_state),
            InjectedFault("want another version", 1, self._want_version),
            InjectedFault("the fleet forgets", 1, world.fleet.forget),
            InjectedFault("the fleet can no longer tell who is dead, or can again", 1, self._blind_fleet),
        ]

    def _speed(self) -> float:
        return float(1 + self._chance.number(int(_MOST_SPEED)))

    def _kill_consumer(self) -> None:
        if living := self._world.fleet.living():
            self._chance.one_of(living).kill()

    def _freeze(self, living: Sequence[SimConsumer] | Sequence[SimController]) -> None:
        if living:
            one = next((each for each in living if each.is_frozen), self._chance.one_of(living))
            one.is_frozen = not one.is_frozen

    def _end_consumer(self) -> None:
        if living := self._world.fleet.living():
            self._chance.one_of(living).ask_to_end()

    def _start_twin(self) -> None:
        living = self._world.fleet.living()
        if living:
            consumer = self._chance.one_of(living).consumer
            if len(self._world.fleet.of(consumer)) < _MOST_TWINS:
                self._world.fleet.add(consumer)

    def _controllers(self) -> list[SimController]:
        return [controller for controller in self._world.controllers if controller.lives]

    def _kill_controller(self) -> None:
        if living := self._controllers():
            self._chance.one_of(living).kill()

    def _start_controller(self) -> None:
        if len(self._controllers()) < _MOST_CONTROLLERS:
            self._world.start_controller(until_done=self._chance.strikes(0.2))

    def _change_speeds(self) -> None:
        load = self._world.load
        if load:
            self._world.load = replace(load, speeds={partition: self._speed() for partition in load.speeds})

    def _change_quiet(self) -> None:
        load = self._world.load
        if load:
            is_quiet = any(load.speeds.values())
            self._world.load = replace(load, speeds={p: 0.0 if is_quiet else self._speed() for p in load.speeds})

    def quiet(self) -> None:
        """Nobody writes."""
        world = self._world
        world.load = Load(dict.fromkeys(world.load.speeds if world.load else (), 0.0))

    def _lose_speed(self) -> None:
        load = self._world.load
        if load and load.speeds:
            partition = self._chance.one_of(sorted(load.speeds))
            self._world.load = replace(load, unknown=load.unknown ^ {partition})

    def _change_partitions(self) -> None:
        load = self._world.load
        if load is None:
            return
        partition = self._chance.one_of(self._names)
        speeds = {p: speed for p, speed in load.speeds.items() if p != partition}
        if partition not in load.speeds:
            speeds[partition] = self._speed()
        self._world.load = Load(speeds, load.unknown & speeds.keys())

    def _change_desired_state(self) -> None:
        if self._desired is RunState.RUNNING:
            self._desired = self._chance.one_of((RunState.PAUSED, RunState.STOPPED))
        else:
            self._desired = RunState.RUNNING
        self._world.set_desired_state(self._desired)

    def _want_version(self) -> None:
        self._world.want(str(self._chance.number(3)), "a")

    def _blind_fleet(self) -> None:
        self._world.fleet.is_blind = not self._world.fleet.is_blind
