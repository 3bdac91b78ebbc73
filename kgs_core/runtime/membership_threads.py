"""The threads beside the batch loop: one takes assignments, one reports. A slow batch holds up neither."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from kgs_core.errors import KgsError, PortError, TransientError, UnsafeError, one_line
from kgs_core.group.membership.membership import Membership
from kgs_core.group.protocol import Heartbeat, MemberAssignment, Received, Report
from kgs_core.group.topics.assignments import KafkaAssignmentReader
from kgs_core.group.topics.durable_writer import DurableWriter
from kgs_core.system.failpoints import failpoint
from kgs_core.system.shutdown import StopFlag

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
        """The present membership."""
        with self._changed:
            return self._membership

    def change(self, step: Callable[[Membership], Membership]) -> Membership:
        """Apply a step; returns the new membership."""
        with self._changed:
            self._membership = step(self._membership)
            self._changed.notify_all()
            return self._membership

    def landed(self) -> None:
        """Note a commit, where no report has been heard of late only after the next one, or after `suspect_after_s`.

        When Kafka is back, its records may be here before a report is there, and who commits unheard must end.
        """
        pace = self.now.pace
        self.wait(lambda m: bool(m.ending) or m.is_heard(time.monotonic()), pace.suspect_after_s)
        self.change(lambda m: m.landed(time.monotonic()))

    def next_message(self) -> tuple[Report | Heartbeat | None, float]:
        """The message that is due, for the one thread that sends, and its time.

        The clock is read under the lock: else a round could begin between the two, and its age would be negative.
        """
        with self._changed:
            now = time.monotonic()
            self._membership, message = self._membership.next_message(now)
            return message, now

    def wait(self, is_enough: Callable[[Membership], bool], timeout_s: float) -> bool:
        """Wait at most `timeout_s` until `is_enough` holds; returns whether it does."""
        with self._changed:
            return self._changed.wait_for(lambda: is_enough(self._membership), timeout_s)


class AssignmentThread(threading.Thread):
    """Receives assignments as they come, and notices the stop signal during a long batch.

    Attributes:
        failure: why no assignment can come any more; the consumer then drains and ends, to be started anew.
    """

    def __init__(
        self, membership: SharedMembership, reader: KafkaAssignmentReader, stop: StopFlag, interrupt: Callable[[], None]
    ) -> None:
        """`interrupt` is called when something has come that must wait for the end of the current round."""
        super().__init__(name="assignments", daemon=True)
        self.failure: KgsError | None = None
        self._membership = membership
        self._reader = reader
        self._stop_flag = stop
        self._interrupt = interrupt
        self._outage = _Outage("assignments cannot be read")

    def run(self) -> None:
        """Run until the membership has ended or assignments can no longer be read: then none matters."""
        while self.failure is None and not self._membership.now.ended:
            try:
                if self._stop_flag.is_set:
                    self._change(Membership.asked_to_end)
                self._take(self._reader.newest(POLL_S))
            except UnsafeError as e:
                self._fail(e)
            except PortError as e:
                self._bear(e)
            except Exception as e:  # noqa: BLE001 - no thread ends in silence, whatever it is
                _log.exception("the thread of assignments has failed")
                self._fail(_unexpected("assignments", e))

    def _take(self, assignments: Sequence[Received[MemberAssignment]]) -> None:
        self._outage.note(None)
        came = time.monotonic()
        if assignments:
            self._change(lambda m: m.received(assignments, came))
        self._membership.change(lambda m: m.listened(came))

    def _bear(self, error: PortError) -> None:
        """Retry after an error, until assignments have been missing for too long."""
        self._outage.note(error)
        reason = self._membership.now.deaf_reason(time.monotonic())
        if reason is None:
            time.sleep(RETRY_S)
        else:
            self._fail(type(error)(f"{reason}: {error}"))

    def _fail(self, error: KgsError) -> None:
        self.failure = error
        self._change(lambda m: m.failed(str(error)))

    def _change(self, step: Callable[[Membership], Membership]) -> None:
        membership = self._membership.change(step)
        if membership.busy_since is not None and not membership.is_acted_on:
            self._interrupt()


class ReportThread(threading.Thread):
    """The only writer of this incarnation's reports: a full one at once on every change, heartbeats otherwise.

    Attributes:
        failure: an unexpected error, not one of the log; the consumer then drains and ends, and this thread keeps
            trying to report it.
    """

    def __init__(self, membership: SharedMembership, writer: DurableWriter) -> None:
        super().__init__(name="reports", daemon=True)
        self.failure: KgsError | None = None
        self._membership = membership
        self._writer = writer
        self._outage = _Outage("reports cannot be appended")
        # An answer later than this is as good as none: the next report says all that this one says.
        self._timeout_s = membership.now.pace.suspect_after_s / 2

    def run(self) -> None:
        """Run until the last report is in the log."""
        while not (membership := self._membership.now).is_over:
            due_s = membership.due_in(time.monotonic())
            if due_s > 0:
                self._membership.wait(lambda m: m.due_in(time.monotonic()) <= 0, due_s)
            elif not self._send():
                time.sleep(RETRY_S)

    def _send(self) -> bool:
        try:
            return self.send_due()
        except Exception as e:  # noqa: BLE001 - as above
            if self.failure is None:
                _log.exception("the thread of reports has failed")
                self.failure = error = _unexpected("reports", e)
                self._membership.change(lambda m: m.failed(str(error)))
            return False

    def send_due(self) -> bool:
        """Send the message that is due; returns whether all went well."""
        message, made_at = self._membership.next_message()
        if message is None:
            return True
        if isinstance(message, Report):
            failpoint("before-report")
        try:
            self._writer.append(message, self._timeout_s)
        except PortError as e:
            self._outage.note(e)
            return False
        self._outage.note(None)
        if isinstance(message, Report):
            failpoint("after-report")
        self._membership.change(lambda m: m.appended(message, made_at))
        return True


def dead_thread(membership: SharedMembership, assignments: AssignmentThread, reports: ReportThread) -> str | None:
    """For the watchdog: which of the two has died silently, so that the process must end; None: neither."""
    now = membership.now
    if now.ended:
        return None
    needed = (reports,) if now.ending else (assignments, reports)
    for thread in needed:
        if thread.ident is not None and not thread.is_alive():
            return f"the thread of {thread.name} has died"
    return None


def _unexpected(what: str, error: Exception) -> KgsError:
    return TransientError(f"the thread of {what} has failed: {type(error).__name__}: {one_line(error)}")


class _Outage:
    """Logs once that something fails, and once that it works again."""

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
