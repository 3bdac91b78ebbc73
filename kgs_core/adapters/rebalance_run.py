"""One change of a group, in parts: measure, assign, price, hand over. For who records each part by itself.

Killed between two parts, or within one: nothing is lost by it. Whoever comes next reads from the topics how far the
change has come. So each part can also be done alone; what it needs of the ones before, it finds out anew.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from kgs_core.adapters.control_process import ControlLoop, ControlPorts, fleet_seen
from kgs_core.adapters.crash_points import crash_here
from kgs_core.adapters.rebalance_ports import CheckedOutbox, HearingInbox, Reference, RunPorts
from kgs_core.adapters.rebalance_results import Assigned, HandedOver, Priced
from kgs_core.adapters.stop_flag import StopFlag
from kgs_core.control.controller_state import ControllerState, Options, Outcome, Result
from kgs_core.control.events import Measured, Write
from kgs_core.control.guard import check_owners, check_write
from kgs_core.control.preview import Preview, moves_to, preview
from kgs_core.control.transitions import State
from kgs_core.control.unread import Unread
from kgs_core.control.watch import Watch
from kgs_core.errors import TransientError, UnsafeError

PATIENCE_S = 60.0
"""How long a run goes on without an answer of Kafka, beside what its change may take."""


class RebalanceRun:
    """One run. For one thread."""

    def __init__(self, group: str, options: Options, reference: Reference, ports: RunPorts) -> None:
        """Does nothing yet.

        Args:
            group: its name, for people.
            options: how its controller is set up.
            reference: what the run was asked for by.
            ports: the world.
        """
        self._group = group
        self._options = replace(options, launches=False, until_done=True)
        self._reference = reference
        self._ports = ports
        self._clocks = ports.clocks
        self._measured: tuple[Measured, float] | None = None
        self._is_told = False
        self._loop: ControlLoop | None = None
        self._before: ControllerState | None = None
        self._assigned: Assigned | None = None
        self._unread = Unread()
        self._problems: tuple[str, ...] = ()

    def measure(self) -> Measured:
        """The measurement that partitions are packed by; the same one at every call.

        Raises:
            MeasurementError: it is not there any more, or too old.
            PortError: Kafka does not answer, or refuses.
        """
        now = self._clocks.steady()
        if self._measured is None:
            limit_s = self._options.membership.max_measurement_age_s
            found = self._ports.feed.at(self._reference.measurement_offset)
            if self._reference.measurement_offset is None and (found is None or found.age_s > limit_s):
                found = self._ports.feed.measure()
            now = self._clocks.steady()
            self._measured = self._reference.accepted(found, limit_s), now
            crash_here("measured")
        measured, at = self._measured
        return replace(measured, age_s=measured.age_s + now - at)

    def look(self, compare: Sequence[str] = ()) -> tuple[Watch, Preview | None]:
        """What a run would do now. Fences nobody and writes nothing.

        Args:
            compare: algorithms to try beside that of the settings.

        Raises:
            MeasurementError, PortError: see `measure`.
        """
        if self._reference.packs:
            self.measure()  # may take a while
        watch = self.observe()
        now = self._clocks.steady()
        if self._reference.packs:
            watch = watch.told(self.measure(), now)
        return watch, preview(watch.state, now, compare)

    def observe(self) -> Watch:
        """The group as it is. Fences nobody and writes nothing.

        Raises:
            PortError: Kafka does not answer, or refuses.
        """
        inbox = self._ports.topics.inbox()
        messages = inbox.read_to_end() if inbox is not None else []
        now = self._clocks.steady()
        watch = Watch.begin(self._options, messages, now, round(self._clocks.wall() * 1000))
        return watch.told(fleet_seen(self._ports.fleet, watch.state.view), now)

    def assign(self, compare: Sequence[str] = ()) -> Assigned:
        """Fence, read, pack; write the Target with the first orders of its change, if another one is due.

        Args:
            compare: algorithms to try beside that of the settings.

        Raises:
            FencedError: a newer controller has taken over.
            UnsafeError: a Target or an order would break an invariant: nothing of it was written.
            MeasurementError, PortError: see `measure`; or Kafka did not answer for long.
        """
        if self._reference.packs:
            self.measure()
        outcome = self._drive(PATIENCE_S, lambda state: state.name is State.GROUP_MANAGEMENT)
        state = self._state
        before = self._before or state
        stood, stands = before.view.target, state.view.target
        self._assigned = Assigned(
            before=stood,
            target=stands,
            is_written=stands is not None and (stood is None or stands.offset != stood.offset),
            preview=preview(before, self._clocks.steady(), compare),
            outcome=outcome,
        )
        crash_here("assigned")
        return self._assigned

    def price(self) -> Priced:
        """Of the change that `assign` has begun or found begun; done alone, that of the newest Target.

        Raises:
            PortError: Kafka does not answer, or refuses.
        """
        assigned = self._assigned
        target = assigned.target if assigned else self.observe().state.view.target
        crash_here("priced")
        if target is None or (assigned and assigned.outcome):
            return Priced(target)
        found, history = target.message, target.message.history
        if assigned is None or not assigned.is_written or assigned.preview is None:
            return Priced(target, found.rscore, history[-1].moved if history else 0, None)
        moves = moves_to(found.assignment, assigned.preview)
        return Priced(target, found.rscore, len(moves), moves)

    def hand_over(self) -> HandedOver:
        """Go on until the change is over, superseded or out of time.

        Raises:
            FencedError, UnsafeError, PortError: see `assign`.
        """
        began = self._clocks.steady()
        outcome = self._drive(self._options.membership.group_management_timeout_s + PATIENCE_S, lambda _: False)
        crash_here("handed-over")
        return HandedOver(
            outcome=outcome or Outcome(Result.TIMED_OUT),
            target=self._state.view.target,
            duration_s=self._clocks.steady() - began,
            gaps_s=self._unread.gaps_s,
            unowned=self._unread.unowned,
            double_owners=check_owners(self._state.view, self._state.suspects()),
            taken_ms=self._unread.taken_ms,
        )

    def newest(self) -> Measured | None:
        """Port `Measurements`: the one that is packed by first, then newer ones, which tell of new partitions."""
        if self._measured is None or self._is_told:
            return self._ports.feed.newest()
        self._is_told = True
        return self.measure()

    @property
    def problems(self) -> tuple[str, ...]:
        """What was found wrong with a write, which was not made because of it."""
        return self._problems

    @property
    def _state(self) -> ControllerState:
        if self._loop is None:
            raise AssertionError("the run has not begun")
        return self._loop.state

    def _drive(self, patience_s: float, until: Callable[[ControllerState], bool]) -> Outcome | None:
        """Begin, if that has not been done, and go on."""
        with _patience(patience_s) as stop:
            loop = self._loop
            if loop is None:
                loop = self._loop = self._new_loop()
                loop.start(stop)
            outcome = loop.go_on(stop, until)
        if outcome is None and stop.is_set:
            raise TransientError(
                f"group {self._group}: the run was not done after {patience_s:g} s, for Kafka did not answer: the next "
                "one goes on from here"
            )
        return outcome

    def _new_loop(self) -> ControlLoop:
        inbox, outbox = self._ports.topics.controller()
        ports = ControlPorts(
            HearingInbox(inbox, self._unread),
            CheckedOutbox(outbox, self._check),
            self._ports.fleet,
            self,
            self._reference.age_of,
        )
        return ControlLoop(self._group, self._options, ports, self._clocks.steady, self._clocks.wall)

    def _check(self, write: Write) -> None:
        state = self._state
        self._problems = check_write(state.view, state.suspects(), write, strict=state.strict)
        if self._problems:
            raise UnsafeError(
                f"group {self._group}: not written, for it would break what must always hold: "
                f"{'; '.join(self._problems)}: a fault of kgs, please report it"
            )
        if write.target is not None and self._before is None:
            self._before = state


@contextmanager
def _patience(seconds: float) -> Iterator[StopFlag]:
    """A flag that is set after so long."""
    stop = StopFlag()
    timer = threading.Timer(seconds, stop.set)
    timer.daemon = True
    timer.start()
    try:
        yield stop
    finally:
        timer.cancel()
