"""A controller as it is driven for real: commands one at a time, answers at once; and where it can be killed."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from kgs_core.errors import FencedError, PortError, TransientError
from kgs_core.group.controller.machine import begin, step
from kgs_core.group.controller.state import Options
from kgs_core.group.view.events import (
    Command,
    Event,
    Fence,
    Fenced,
    FleetSeen,
    Launch,
    Note,
    ReadToEnd,
    RecordsRead,
    StartFailed,
    Stop,
    Tick,
    Write,
    WriteFailed,
    Written,
)
from kgs_core.group.view.transitions import State
from kgs_core.planning.load import Load
from tests.world.chance import Chance
from tests.world.fleet import SimFleet
from tests.world.ports import SimControllerWriter, SimGroupTopicReader
from tests.world.topics import Topics


class Moment(StrEnum):
    BEFORE = "before"
    INSIDE = "inside"
    """Of a Write only: the transaction is decided, and ends when the next controller fences."""
    AFTER = "after"


class KillPoint(NamedTuple):
    state: State
    command: str
    moment: Moment


def moments_of(command: Command) -> tuple[Moment, ...]:
    """All moments of one command; a Note has none, for it leaves no trace."""
    if isinstance(command, Note):
        return ()
    return tuple(Moment) if isinstance(command, Write) else (Moment.BEFORE, Moment.AFTER)


Killer = Callable[[KillPoint], bool]


def spare_it(_point: KillPoint) -> bool:
    return False


def _look_away() -> None:
    pass


class SimController:
    """One controller process.

    Attributes:
        state: of the machine.
        lives: it is neither killed nor at its end.
        is_frozen: it lives and does nothing (SIGSTOP).
        notes: what it has logged.
        killer: asked at every point whether it dies there.
        onlooker: called after every command, while the controller still knows no more than when it gave it.
    """

    def __init__(self, options: Options, topics: Topics, fleet: SimFleet, chance: Chance) -> None:
        self._topics = topics
        self._fleet = fleet
        self._chance = chance
        self._topic_reader = SimGroupTopicReader(topics, chance)
        self._controller_writer = SimControllerWriter(topics, chance)
        self.state, commands = begin(options, topics.clock.now, topics.clock.ms)
        self._queue: list[Command] = list(commands)
        self._failure: WriteFailed | None = None
        self._was_killed = False
        self.is_frozen = False
        self.notes: list[Note] = []
        self.killer: Killer = spare_it
        self.onlooker: Callable[[], None] = _look_away

    @property
    def lives(self) -> bool:
        """Whether it can do anything any more."""
        return not self._was_killed and self.state.name is not State.ENDED

    def kill(self) -> None:
        self._was_killed = True

    def turn(self, measured: Load | None) -> None:
        """What it does in a second or so: reads, looks at the fleet and at the measurement, and acts on it."""
        self._try_again()
        self.work()
        for news in (self.read, self.look_at_fleet):
            news()
        if measured is not None:
            self.tell(measured)
        self.tell(Tick())

    def work(self) -> None:
        """Carry out what it has decided, to the last command."""
        while self.carry_out():
            pass

    def carry_out(self) -> bool:
        """One command, and its answer; False: there is none, or it cannot."""
        if self.is_frozen or not self.lives or not self._queue:
            return False
        command = self._queue.pop(0)
        if self._dies(command, Moment.BEFORE):
            return False
        answer = self._answer(command)
        self.onlooker()
        if self._was_killed or self._dies(command, Moment.AFTER):
            return False
        if isinstance(answer, WriteFailed):
            self._failure = answer
            return False
        if answer is not None:
            self._hear(answer)
        return True

    def tell(self, event: Event) -> None:
        """An event, and everything that follows from it."""
        if self.listens:
            self._hear(event)
            self.work()

    def read(self) -> None:
        if self.listens:
            self.tell(RecordsRead(self._topic_reader.poll(0.0)))

    def look_at_fleet(self) -> None:
        if self.listens:
            self.tell(self._fleet_seen())

    def nudge(self, measured: Load | None) -> None:
        """The smallest step: one command, or one event whose commands wait."""
        self._try_again()
        if not self.listens:
            self.carry_out()
            return
        events: list[Callable[[], Event]] = [lambda: RecordsRead(self._topic_reader.poll(0.0)), self._fleet_seen, Tick]
        if measured is not None:
            events.append(lambda: measured)
        self._hear(self._chance.one_of(events)())

    @property
    def listens(self) -> bool:
        """Whether it can take an event now: it has no command left to carry out."""
        return not self.is_frozen and self.lives and not self._queue and self._failure is None

    def _try_again(self) -> None:
        """A failure is given to it at the next turn, when some time has gone by."""
        if self._failure is not None and not self.is_frozen and self.lives:
            failure, self._failure = self._failure, None
            self._hear(failure)

    def _fleet_seen(self) -> FleetSeen:
        members = self.state.view.members.values()
        dead = [
            member.member.incarnation
            for member in members
            if member.report is not None and self._fleet.is_dead(member.report.process)
        ]
        return FleetSeen(self._fleet.runs(), frozenset(dead))

    def _hear(self, event: Event) -> None:
        self.state, commands = step(self.state, event, self._topics.clock.now)
        kinds = {type(command) for command in commands}
        assert not kinds & {Launch, Stop} or not kinds & {Fence, ReadToEnd, Write}, "dropped where Kafka fails"
        if self.state.name is not State.ENDED:
            self._queue += commands
        else:
            for command in commands:
                self._do(command)

    def _dies(self, command: Command, moment: Moment) -> bool:
        if moment in moments_of(command) and self.killer(self._point(command, moment)):
            self.kill()
        return self._was_killed

    def _point(self, command: Command, moment: Moment) -> KillPoint:
        return KillPoint(self.state.name, type(command).__name__, moment)

    def _answer(self, command: Command) -> Event | None:
        """Carry it out; what follows a failure is dropped."""
        try:
            return self._do(command)
        except FencedError:
            self._queue.clear()
            return Fenced()
        except TransientError as e:
            self._queue.clear()
            return WriteFailed(str(e))

    def _do(self, command: Command) -> Event | None:
        match command:
            case Fence():
                self._controller_writer.fence()
            case ReadToEnd():
                return RecordsRead(self._topic_reader.read_to_end())
            case Write():
                return self._write(command)
            case Launch():
                return self._launch(command)
            case Stop():
                self._record(command)
                self._fleet.stop(command.handle)
            case Note():
                self._record(command)
                self.notes.append(command)
        return None

    def _launch(self, command: Launch) -> Event | None:
        self._record(command)
        try:
            self._fleet.start(command.consumer, command.consumer_class)
        except PortError as e:
            return StartFailed(command.consumer, str(e))
        return None

    def _record(self, command: Command) -> None:
        """Of a Write it is the records that count."""
        self._topics.journal.append((self._topics.clock.now, command))

    def _write(self, command: Write) -> Event | None:
        if self.killer(self._point(command, Moment.INSIDE)):
            self._topics.hanging = command.messages
            self.kill()
            return None
        written = self._controller_writer.write(command.target, command.assignments, command.tombstones)
        return Written(written)
