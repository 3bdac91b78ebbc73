"""One change of a group, in parts: measure, assign, price, hand over. For callers that record each part.

A kill between two parts, or within one, loses nothing: the next run reads from the topics how far the change has come.
So each part can also be done alone; it finds out anew what it needs of the ones before.

Likewise a change that cannot wait for a run: who has seen that it is due begins it (`carry_out`), and the run that
comes after reads from the topics what was before it, and what has become of it.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from kgs_core.config.membership import MembershipSettings
from kgs_core.errors import FencedError, MeasurementError, TransientError, UnsafeError
from kgs_core.group.controller.desired_state import is_placed
from kgs_core.group.controller.observer import GroupObserver
from kgs_core.group.controller.preview import preview
from kgs_core.group.controller.state import ControllerOutcome, ControllerState, Options, Result
from kgs_core.group.controller.write_guard import check_owners, check_write
from kgs_core.group.protocol import Message, Received, Target
from kgs_core.group.view.events import Write
from kgs_core.group.view.handover_gaps import Unread
from kgs_core.group.view.transitions import State
from kgs_core.planning.load import Load
from kgs_core.planning.plan import moves_between
from kgs_core.runtime.controller_loop import ControlLoop, ControlPorts, fleet_seen
from kgs_core.runtime.followed_change import Sources, follow_change
from kgs_core.runtime.rebalance_ports import Reference, RunPorts
from kgs_core.runtime.rebalance_results import Assigned, HandedOver, Priced, started_s
from kgs_core.system.failpoints import failpoint
from kgs_core.system.shutdown import stop_after

_log = logging.getLogger(__name__)
PATIENCE_S = 60.0
"""Time that a run continues without an answer of Kafka, beside what its change may take."""


class RebalanceRun:
    """One run. For one thread.

    Attributes:
        problems: faults of a write, which was not made because of them.
    """

    def __init__(self, group: str, options: Options, reference: Reference, ports: RunPorts) -> None:
        self._group = group
        self._options = replace(options, launches=False, until_done=True)
        self._reference = reference
        self._ports = ports
        self._clocks = ports.clocks
        self._measured: Load | None = None
        self._is_logged = False
        self._loop: ControlLoop | None = None
        self._began: float | None = None
        self._before: ControllerState | None = None
        self._assigned: Assigned | None = None
        self._unread = Unread()
        self._has_heard = False
        self._earlier: Sequence[Received[Message]] | None = None
        self.problems: tuple[str, ...] = ()

    def measure_for_record(self) -> Load | None:
        """The measurement that the change was decided by, also before the run; None: gone, and it does not pack."""
        found = self._reference.packed_by(self._ports.feed)
        return self.measure() if found is None and self._reference.packs else found

    def measure(self) -> Load:
        """The measurement that partitions are packed by; the same one at every call, unless it has grown too old.

        A run may take long to begin. Where the one of its reference is too old, or not there any more, the newest one
        counts, and where that is no better, one of its own.

        Raises:
            MeasurementError: none was to be had that is young enough.
            PortError: Kafka does not answer, or refuses.
        """
        now = self._clocks.steady()
        limit_s = self._options.membership.max_measurement_age_s
        if self._measured is not None and not self._is_logged and self._aged(now).age_s > limit_s:
            self._measured = None
        if self._measured is None:
            found = self._young_enough(limit_s)
            now = self._clocks.steady()
            self._measured = replace(found, read_at=now)
            failpoint("measured")
        return self._aged(now)

    def observe_measured(self) -> GroupObserver:
        """As `observe`, and what is written into it.

        Raises:
            MeasurementError, PortError: see `measure`.
        """
        self.measure()  # may take a while
        return self.observe().observed(self.measure(), self._clocks.steady())

    def observe(self) -> GroupObserver:
        """The group as it is. Fences nobody and writes nothing. A PortError if Kafka fails."""
        reader = self._ports.topics.reader()
        return self._observer(reader.read_to_end() if reader is not None else [])

    def _observer(self, messages: Sequence[Received[Message]]) -> GroupObserver:
        now = self._clocks.steady()
        watch = GroupObserver.begin(self._options, messages, now, round(self._clocks.wall() * 1000))
        return watch.observed(fleet_seen(self._ports.fleet, watch.state.view), now)

    def assign(self, compare: Sequence[str] = ()) -> Assigned:
        """Fence, read, pack; write the Target and first assignments of a change that is due; unsafe ones never.

        Raises:
            FencedError: a newer controller has taken over.
            UnsafeError: a Target or an assignment would break an invariant: nothing of it was written.
            MeasurementError, PortError: see `measure`; or Kafka did not answer for long.
        """
        if self._reference.packs:
            self.measure()
        outcome = self._drive(PATIENCE_S, lambda state: state.name is State.GROUP_MANAGEMENT)
        state = self._state
        before = self._before or self._before_it_was_begun() or state
        stood, stands = before.view.target, state.view.target
        is_written = stands is not None and (stood is None or stands.offset != stood.offset)
        self._assigned = Assigned(
            before=stood,
            target=stands,
            is_written=is_written,
            preview=preview(before, self._clocks.steady(), compare),
            outcome=None if is_written else outcome,
        )
        failpoint("assigned")
        return self._assigned

    def price(self) -> Priced:
        """Price the change that `assign` has begun or found, else the newest Target. PortError if Kafka fails."""
        assigned = self._assigned
        target = assigned.target if assigned else self.observe().state.view.target
        failpoint("priced")
        if target is None or (assigned and assigned.outcome):
            return Priced(target)
        found, history = target.message, target.message.history
        if assigned is None or not assigned.is_written or assigned.preview is None:
            return Priced(target, found.rscore, history[-1].moved if history else 0, None)
        had, speeds = assigned.preview.group.current, assigned.preview.measured.write_speeds()
        moves = moves_between(had, found.assignment, speeds)
        return Priced(target, assigned.rscore, len(moves), moves)

    def hand_over(self) -> HandedOver:
        """Go on until the change is over, superseded or out of time.

        Raises:
            FencedError, UnsafeError, PortError: see `assign`.
        """
        began, timeout_s = self._clocks.steady(), self._options.membership.group_management_timeout_s
        outcome = self._drive(timeout_s + PATIENCE_S, lambda _: False)
        state = self._state
        if outcome is not None and outcome.result is Result.FENCED:  # recorded to its end all the same
            sources = Sources(self._ports.topics.reader, self._hear, self._clocks.steady)
            stands = state.view.target.offset if state.view.target else self._reference.written
            outcome, state = follow_change(sources, state, stands, began + timeout_s)
        failpoint("handed-over")
        is_written = self._assigned is not None and self._assigned.is_written
        if is_written and outcome is not None and outcome.result is Result.NOTHING_TO_DO:
            outcome = ControllerOutcome(Result.CONVERGED)  # before this run, which was to see to it
        return HandedOver(
            outcome=outcome or ControllerOutcome(Result.TIMED_OUT),
            target=state.view.target,
            duration_s=self._clocks.steady() - began,
            gaps_s=self._unread.gaps_s,
            unowned=self._unread.unowned,
            double_owners=check_owners(state.view, state.suspects()),
            taken_ms=self._unread.taken_ms,
            started_s=started_s(state.view) if is_written else None,
        )

    def carry_out(self, patience_s: float) -> Received[Target] | None:
        """Begin the change that is due, and go on until only who has yet to come is waited for; the Target that stands.

        Args:
            patience_s: longest wait until it is begun, and once more for the rest.

        Raises:
            FencedError, UnsafeError, MeasurementError, PortError: see `assign`.
        """
        if self._reference.packs:
            self.measure()
        self._drive(patience_s, lambda state: state.name is State.GROUP_MANAGEMENT)
        with stop_after(patience_s) as stop:
            self._loop_begun.go_on(stop, is_placed)
        return self._state.view.target

    def newest(self) -> Load | None:
        """Port `MeasurementSource`: the one that is packed by first, then newer ones, which tell of new partitions."""
        if self._measured is None or self._is_logged:
            return self._ports.feed.newest()
        self._is_logged = True
        return self._as_new_as_the_target(self.measure())

    def _as_new_as_the_target(self, measured: Load) -> Load:
        """The measurement that the Target was packed by, if that was written after this run was asked for.

        By an older one than that, the run would take back what has been found to be necessary since.
        """
        target = self._state.view.target
        offset = target.message.measurement_offset if target is not None else None
        if offset is None or measured.measurement_offset is None or offset <= measured.measurement_offset:
            return measured
        found = self._ports.feed.at(offset)
        if found is not None:
            self._measured = replace(found, read_at=self._clocks.steady())
        return found or measured

    def _aged(self, now: float) -> Load:
        if self._measured is None:
            raise AssertionError("nothing was measured")
        return self._measured.as_of(now)

    def _young_enough(self, limit_s: float) -> Load:
        feed, offset = self._ports.feed, self._reference.measurement_offset
        for wanted in (offset, None) if offset is not None else (None,):
            found = feed.at(wanted)
            if found is not None and found.age_s <= limit_s:
                return found
            if wanted is not None:
                age = "no longer exists" if found is None else f"is {found.age_s:.0f} s old"
                _log.warning("measurement %d %s: the newest one counts, or one of its own", wanted, age)
        made = feed.measure()
        if made.age_s > limit_s:
            raise MeasurementError(
                f"group {self._group}: a measurement made for this run is {made.age_s:.0f} s old by now, and "
                f"membership.suspect_after_s is {limit_s:g}: raise it"
            )
        return made

    @property
    def _loop_begun(self) -> ControlLoop:
        if self._loop is None:
            raise AssertionError("the run has not begun")
        return self._loop

    @property
    def _state(self) -> ControllerState:
        return self._loop_begun.state

    def _before_it_was_begun(self) -> ControllerState | None:
        """The group before the Target that was written for this run; None: there is no such Target, or no longer."""
        if self._earlier is None:
            return None
        watch, measured = self._observer(self._earlier), self._reference.packed_by(self._ports.feed)
        return watch.state if measured is None else watch.observed(measured, self._clocks.steady()).state

    def _drive(self, patience_s: float, until: Callable[[ControllerState], bool]) -> ControllerOutcome | None:
        """Begin, if that has not been done, and go on; all parts together for no longer than a run may take."""
        now = self._clocks.steady()
        self._began = now if self._began is None else self._began
        patience_s = max(0.0, min(patience_s, self._began + longest_run_s(self._options.membership) - now))
        with stop_after(patience_s) as stop:
            if self._loop is None:
                self._loop = self._new_loop()
                self._loop.start(stop)
            try:
                outcome = self._loop.go_on(stop, until)
            except FencedError:
                if self._reference.written is None:
                    raise
                outcome = ControllerOutcome(Result.FENCED, "the controller that began it continues")
        if outcome is None and stop.is_set and not until(self._state):
            raise TransientError(
                f"group {self._group}: the run was not done after {patience_s:g} s, for Kafka did not answer: the next "
                "one continues from here"
            )
        return outcome

    def _new_loop(self) -> ControlLoop:
        reader, writer = self._ports.topics.controller()
        ports = ControlPorts(
            reader, writer, self._ports.fleet, self, self._reference.age_of, hear=self._hear, check=self._check
        )
        return ControlLoop(self._group, self._options, ports, self._clocks.steady, self._clocks.wall)

    def _hear(self, messages: Sequence[Received[Message]]) -> None:
        if not self._has_heard:
            self._has_heard = True
            earlier, messages = self._reference.divided(messages)
            self._unread.take(earlier)
            self._unread.forget_gaps()  # what changed hands before the change is none of ours
            self._earlier = earlier if messages else None
        self._unread.take(messages)

    def _check(self, write: Write) -> None:
        state = self._state
        self.problems = check_write(state.view, state.suspects(), write, strict=state.strict)
        if self.problems:
            raise UnsafeError(
                f"group {self._group}: not written, for it would break what must always hold: "
                f"{'; '.join(self.problems)}: a fault of kgs, please report it"
            )
        if write.target is not None and self._before is None and self._earlier is None:
            self._before = state
            self._unread.forget_gaps()  # those of the change before


def longest_run_s(membership: MembershipSettings) -> float:
    """Longest time that a run may hold the right to write; an older one hangs and may be fenced."""
    return membership.group_management_timeout_s + 2 * PATIENCE_S
