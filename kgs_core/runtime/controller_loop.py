"""The bare control loop: drives the controller with real ports, until a signal ends it or a newer one takes over.

If it is killed at any point, the next one reads everything from Kafka; the consumers do not notice.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Protocol, assert_never

from kgs_core.config import Settings
from kgs_core.config.packing import FIRST_FLAT_OUT
from kgs_core.errors import FencedError, PortError, TransientError
from kgs_core.group.controller.machine import begin, step
from kgs_core.group.controller.state import ControllerOutcome, ControllerState, Options, Result
from kgs_core.group.controller.terms import terms_of
from kgs_core.group.protocol import Message, Received
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
from kgs_core.group.view.group_view import GroupView
from kgs_core.planning.load import Load
from kgs_core.ports import ControllerWriter, Fleet, GroupTopicReader
from kgs_core.system.failpoints import failpoint
from kgs_core.system.first_capacity import first_flat_out
from kgs_core.system.patience import LogOnChange
from kgs_core.system.shutdown import StopFlag

POLL_S = 0.1
FLEET_EVERY_S = 0.5
TICK_EVERY_S = 1.0
_SHOWN = 20
_log = logging.getLogger(__name__)


class MeasurementSource(Protocol):
    """Source of measurements that is polled."""

    def newest(self) -> Load | None:
        """The newest measurement, returned once; None: there is no usable one since the last call.

        Raises:
            KgsError: it cannot be measured now; one that measures in the background raises nothing.
        """


@dataclass(frozen=True, slots=True)
class ControlPorts:
    """Ports of a controller.

    Attributes:
        report_age_s: lower bound on the age of the newest report among the messages; 0 if unknown.
        check: called before every write; may refuse it with an error.
    """

    reader: GroupTopicReader
    writer: ControllerWriter
    fleet: Fleet
    measurements: MeasurementSource
    report_age_s: Callable[[Sequence[Received[Message]]], float] = lambda _: 0.0
    hear: Callable[[Sequence[Received[Message]]], None] = lambda _: None
    check: Callable[[Write], None] = lambda _: None


def controller_options(settings: Settings) -> Options:
    """Options of a group's controller, whoever runs it."""
    packing = settings.packing
    return Options(
        packing,
        settings.membership,
        lambda: Random(0),  # noqa: S311 - no secret
        terms=terms_of(settings),
        first_flat_out=first_flat_out() if packing.learns_capacity else FIRST_FLAT_OUT,
    )


class ControlLoop:
    """One controller's life.

    Attributes:
        state: the controller's knowledge; missing before `start`.
    """

    def __init__(
        self,
        group: str,
        options: Options,
        ports: ControlPorts,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._group = group
        self._options = options
        self._ports = ports
        self._clock = clock
        self._wall = wall
        self._say = LogOnChange(partial(_log.warning, "%s"))  # not ten times a second
        self._fleet_due_s = self._tick_due_s = float("-inf")
        self.state: ControllerState

    def run(self, stop: StopFlag) -> ControllerOutcome | None:
        """Control the group until `stop` or, if only one change is asked for, until that is over.

        Returns:
            How the change ended; None when it was stopped.

        Raises:
            FencedError: a newer controller has taken over. Final.
            UnsafeError, PermanentError: a person must act.
        """
        self.start(stop)
        return self.go_on(stop)

    def start(self, stop: StopFlag) -> None:
        """Fence every older controller, and read the topics to their ends.

        Raises:
            UnsafeError, PermanentError: a person must act.
        """
        self.state, commands = begin(self._options, self._clock(), round(self._wall() * 1000))
        self._carry_out(commands, stop)

    def go_on(
        self, stop: StopFlag, until: Callable[[ControllerState], bool] = lambda _: False
    ) -> ControllerOutcome | None:
        """Continue like `run`, up to a state for which `until` holds; None: the change is not over.

        Raises:
            FencedError, UnsafeError, PermanentError: see `run`.
        """
        while not self._is_over(stop) and not until(self.state):
            for event in self._events():
                if not self._is_over(stop) and not until(self.state):
                    self._tell(event, stop)
        outcome = self.state.outcome
        if outcome is not None and outcome.result is Result.FENCED:
            raise FencedError(
                f"controller of group {self._group}: {outcome.reason}: this one has ended, do not start it again"
            )
        return outcome

    def _is_over(self, stop: StopFlag) -> bool:
        return stop.is_set or self.state.outcome is not None

    def _events(self) -> Iterable[Event]:
        """Events since the last call; waits a moment for news of the group."""
        try:
            messages = self._ports.reader.poll(POLL_S)
            self._ports.hear(messages)
            yield RecordsRead(messages)
        except TransientError as e:
            self._say(f"Kafka: {e}")
            time.sleep(min(e.retry_after_s, POLL_S))
        else:
            self._say("")
        now = self._clock()
        if now >= self._fleet_due_s:
            self._fleet_due_s = now + FLEET_EVERY_S
            yield fleet_seen(self._ports.fleet, self.state.view)
        if (measured := self._ports.measurements.newest()) is not None:
            yield measured
        if now >= self._tick_due_s:
            self._tick_due_s = now + TICK_EVERY_S
            yield Tick()

    def _tell(self, event: Event, stop: StopFlag) -> None:
        self.state, commands = step(self.state, event, self._clock())
        self._carry_out(commands, stop)

    def _carry_out(self, commands: Iterable[Command], stop: StopFlag) -> None:
        """Carry out commands in order, then those that answers ask for; drop the rest after a failure or refusal."""
        due = deque(commands)
        while due and not stop.is_set:
            try:
                answer = self._execute(due.popleft())
            except TransientError as e:
                self._say(f"trying again: {e}")
                due.clear()
                stop.wait(e.retry_after_s)
                answer = WriteFailed(str(e))
            if isinstance(answer, Fenced):
                due.clear()  # S5: nothing behind a refused write has an effect
            if answer is not None:
                self.state, more = step(self.state, answer, self._clock())
                due.extend(more)

    def _execute(self, command: Command) -> Event | None:
        match command:
            case Fence() | ReadToEnd() | Write():
                return self._ask_kafka(command)
            case Launch():
                return self._launch(command)
            case Stop():
                self._ports.fleet.stop(command.handle)
                return None
            case Note():
                _log.info("%s", note_line(command))
                return None
            case _:
                assert_never(command)

    def _ask_kafka(self, command: Fence | ReadToEnd | Write) -> Event | None:
        try:
            match command:
                case Fence():
                    self._ports.writer.fence()
                    failpoint("fenced")
                    return None
                case ReadToEnd():
                    messages = self._ports.reader.read_to_end()
                    self._ports.hear(messages)
                    return RecordsRead(messages, self._ports.report_age_s(messages))
                case Write():
                    failpoint("before-write")
                    self._ports.check(command)
                    written = self._ports.writer.write(command.target, command.assignments, command.tombstones)
                    failpoint("after-write")
                    return Written(written)
                case _:
                    assert_never(command)
        except FencedError as e:
            _log.warning("%s", e)
            return Fenced()

    def _launch(self, command: Launch) -> Event | None:
        failpoint("before-launch")
        try:
            self._ports.fleet.start(command.consumer, command.consumer_class)
        except PortError as e:
            return StartFailed(command.consumer, str(e))
        failpoint("launched")
        return None


def note_line(note: Note) -> str:
    """Line as `handover partitions=a:0,a:1 reason="consumer lost: 2"`: blanks are quoted, empty values left out."""
    found = [f"{name}={_field(value)}" for name, value in note.fields.items() if value not in ("", (), None)]
    return " ".join([note.text, *found])


def _field(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, tuple | list):
        more = [f"and {len(value) - _SHOWN} more"] if len(value) > _SHOWN else []
        return _field(",".join([*map(str, value[:_SHOWN]), *more]))
    text = str(value)
    return f'"{text}"' if " " in text else text


def fleet_seen(fleet: Fleet, view: GroupView) -> FleetSeen:
    """A fleet's report on a group's consumers."""
    runs = fleet.runs()
    dead = (i for i, m in view.members.items() if m.report is not None and fleet.is_dead(m.report.process))
    return FleetSeen(runs, frozenset(dead))
