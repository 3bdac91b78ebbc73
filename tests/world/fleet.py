"""The fleet: starts consumers, and knows for certain who is dead, unless it has forgotten them."""

from collections.abc import Sequence

from kgs_core.errors import TransientError
from kgs_core.group.protocol import Process
from kgs_core.model import ConsumerId
from kgs_core.ports import Run
from tests.world.chance import Chance
from tests.world.consumers import Habits, SimConsumer
from tests.world.topics import Topics


class SimFleet:
    """`ports.Fleet`.

    Attributes:
        processes: all that there ever were, by handle, the earliest first.
        started: those among them that a controller has started.
        habits: of those that are started from now on.
        is_blind: it cannot tell who is dead, as when a machine is gone: all seem to run.
    """

    def __init__(self, topics: Topics, chance: Chance, habits: Habits) -> None:
        self._topics = topics
        self._chance = chance
        self._forgotten: set[str] = set()
        self.processes: dict[str, SimConsumer] = {}
        self.started: list[SimConsumer] = []
        self.habits = habits
        self.is_blind = False

    def runs(self) -> Sequence[Run]:
        """All that it has not forgotten."""
        now = self._topics.clock.now
        return [
            Run(p.consumer, p.handle, now - p.started_at, not (p.lives or self.is_blind), p.exit_code)
            for p in self.processes.values()
            if p.handle not in self._forgotten
        ]

    def start(self, consumer: ConsumerId, consumer_class: str = "") -> Run:
        """Start one process; one that runs already, as far as is known, is returned instead."""
        running = [run for run in self.runs() if run.consumer == consumer and not run.is_over]
        if running:
            return running[-1]
        if self._chance.strikes(self._chance.trouble.start_refused):
            raise TransientError(f"simulated fleet: consumer {consumer} cannot be started")
        process = self.add(consumer)
        self.started.append(process)
        process.consumer_class = consumer_class
        process.fails = self._chance.strikes(self._chance.trouble.start_fails)
        return Run(consumer, process.handle, 0.0, is_over=False)

    def add(self, consumer: ConsumerId) -> SimConsumer:
        """A process that nobody asked for, or that a start asks for."""
        number = len(self.processes) + 1
        now = self._topics.clock.now
        process = SimConsumer(self._topics, self._chance, self.habits, consumer, f"run-{number}", number, now)
        self.processes[process.handle] = process
        return process

    def stop(self, handle: str) -> None:
        self.processes[handle].ask_to_end()

    def is_dead(self, process: Process) -> bool | None:
        known = self.processes.get(process.run_id)
        return None if self.is_blind or known is None else not known.lives

    def forget(self) -> None:
        """Lose the memory of all runs: Dagster's database is gone."""
        self._forgotten.update(self.processes)

    def living(self) -> list[SimConsumer]:
        return [process for process in self.processes.values() if process.lives]

    def of(self, consumer: ConsumerId) -> list[SimConsumer]:
        return [process for process in self.living() if process.consumer == consumer]
