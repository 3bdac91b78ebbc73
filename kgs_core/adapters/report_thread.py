"""The threads beside the batch loop: one takes orders, one reports. A slow batch holds up neither."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from kgs_core.adapters.crash_points import crash_here
from kgs_core.adapters.stop_flag import StopFlag
from kgs_core.consumer.membership import Membership
from kgs_core.errors import PortError, TransientError, UnsafeError
from kgs_core.ports import OrderBox, ReportBox
from kgs_core.protocol import Heartbeat, Order, Received, Report

POLL_S = 0.5
RETRY_S = 0.2
_log = logging.getLogger(__name__)


class SharedMembership:
    """The membership as the threads of a process share it: each step is a pure function, applied under a lock."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._changed = threading.Condition()

    @property
    def now(self) -> Membership:
        """As it is at this moment."""
        with self._changed:
            return self._membership

    def change(self, step: Callable[[Membership], Membership]) -> Membership:
        """Apply a step; returns what came of it."""
        with self._changed:
            self._membership = step(self._membership)
            self._changed.notify_all()
            return self._membership

    def next_message(self, now: float) -> Report | Heartbeat | None:
        """The message that is due, for the one thread that sends them."""
        with self._changed:
            self._membership, message = self._membership.next_message(now)
            return message

    def fence_reason(self, now: float) -> str | None:
        """For the watchdog, see `Membership.fence_reason`."""
        return self.now.fence_reason(now)

    def wait(self, is_enough: Callable[[Membership], bool], timeout_s: float) -> bool:
        """Wait until it is so, for `timeout_s` at most; returns whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: is_enough(self._membership), timeout_s)


class OrderThread(threading.Thread):
    """Takes orders from our queue as they come, and hears of the stop signal during a long batch.

    Attributes:
        failure: why no order can come any more; the process then drains and ends, to be started anew.
    """

    def __init__(self, membership: SharedMembership, box: OrderBox, stop: StopFlag, hurry: Callable[[], None]) -> None:
        """Starts nothing yet.

        Args:
            membership: gets what comes.
            box: our queue.
            stop: somebody wants the process to end.
            hurry: called when something has come that must wait for the end of the round in hand.
        """
        super().__init__(name="orders", daemon=True)
        self.failure: UnsafeError | None = None
        self._membership = membership
        self._box = box
        self._stop_flag = stop
        self._hurry = hurry
        self._outage = _Outage("orders cannot be read")

    def run(self) -> None:
        """Until we are to end, or have ended: from then on no order matters."""
        while self.failure is None and not self._membership.now.ended:
            if self._stop_flag.is_set:
                self._change(Membership.asked_to_end)
            try:
                self._take(self._box.newest(POLL_S))
            except UnsafeError as e:
                self.failure = e
                self._change(Membership.asked_to_end)
            except PortError as e:
                self._outage.note(e)
                time.sleep(RETRY_S)

    def _take(self, orders: Sequence[Received[Order]]) -> None:
        self._outage.note(None)
        if orders:
            came = time.monotonic()
            self._change(lambda m: m.received(orders, came))

    def _change(self, step: Callable[[Membership], Membership]) -> None:
        membership = self._membership.change(step)
        if membership.busy_since is not None and not membership.is_acted_on:
            self._hurry()


class ReportThread(threading.Thread):
    """The only writer of this incarnation's reports: in full at once on every change, else heartbeats."""

    def __init__(self, membership: SharedMembership, box: ReportBox) -> None:
        super().__init__(name="reports", daemon=True)
        self._membership = membership
        self._box = box
        self._outage = _Outage("reports cannot be appended")
        # An answer later than this is as good as none: the next report says all that this one says.
        self._timeout_s = membership.now.pace.suspect_after_s / 3

    def run(self) -> None:
        """Until the last word is in the log."""
        while not (membership := self._membership.now).is_over:
            due_s = membership.due_in(time.monotonic())
            if due_s > 0:
                self._membership.wait(lambda m: m.due_in(time.monotonic()) <= 0, due_s)
            elif not self.send_due():
                time.sleep(RETRY_S)

    def send_due(self) -> bool:
        """Send what is due; whether all went well."""
        made_at = time.monotonic()
        message = self._membership.next_message(made_at)
        if message is None:
            return True
        if isinstance(message, Report):
            crash_here("before-report")
        try:
            self._box.send(message, self._timeout_s)
        except PortError as e:
            self._outage.note(e)
            return False
        self._outage.note(None)
        if isinstance(message, Report):
            crash_here("after-report")
        self._membership.change(lambda m: m.appended(message, made_at))
        return True


class _Outage:
    """Says once that something fails, and once that it goes on."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lasts = False

    def note(self, error: PortError | None) -> None:
        if error is not None and not self._lasts:
            level = logging.WARNING if isinstance(error, TransientError) else logging.ERROR
            _log.log(level, "%s, trying again: %s", self._what, error)
        elif error is None and self._lasts:
            _log.info("over: %s", self._what)
        self._lasts = error is not None
