"""The group controlled by `kgs control`: one process that starts the consumers on this machine."""

import os
import time
from collections.abc import Mapping

from kgs_core.config import Settings
from kgs_core.demo.layout import Layout
from kgs_core.demo.supervised_process import Failures, death, end_in_order, last_words
from kgs_core.demo.supervisor import Say
from kgs_core.errors import FencedError
from kgs_core.fleet.local import LocalFleet, consume_command
from kgs_core.system.shutdown import StopFlag
from kgs_core.system.subprocesses import ChildProcess

RESTART_EVERY_S = 5.0
_END_TIMEOUT_S = 15.0


class BareControl:
    """A `GroupControl`. The consumers are the controller's children and outlive it; they end with this process.

    Attributes:
        failure: why the controller is not started again, in one line; empty while it is.
    """

    invitation = "kill -9 a consumer or the controller and watch: both come again, and nothing is lost or doubled"

    def __init__(self, layout: Layout, settings: Settings, environ: Mapping[str, str], say: Say) -> None:
        """Starts nothing yet.

        Raises:
            PermanentError: the folder for logs cannot be made.
        """
        self._say = say
        self._layout = layout
        self._drain_timeout_s = settings.consumer.batch_timeout_s
        command = layout.control_command(end_with=os.getpid())
        self._controller = ChildProcess("controller", command, layout.log_file("controller"), environ)
        # To end consumers, whoever has started them; it never starts one.
        self._fleet = LocalFleet(settings, consume_command(layout.config_file), layout.consumer_logs, environ)
        self._started_s = 0.0
        self._due_s: float | None = None
        self._failures = Failures()
        self.failure = ""

    @property
    def state(self) -> str:
        """Its pid, or how it is without one."""
        pid = self._controller.pid  # asked once: it may end in between
        if pid is not None:
            return f"controller pid {pid}"
        if self._due_s is not None:
            return f"controller dead, again in {max(0.0, self._due_s - time.monotonic()):.0f} s"
        return "no controller"

    def start(self) -> None:
        """Starts the controller."""
        self._due_s = None
        self._started_s = time.monotonic()
        self._controller.start()
        self._say(f"controller started (pid {self._controller.pid}): it measures the load and starts consumers for it")

    def look_after(self) -> None:
        """Starts a dead controller again; one that another has taken over from is not started again."""
        if self._controller.pid is not None or self.failure:
            return
        now = time.monotonic()
        if self._due_s is None:
            code = self._controller.exit_code
            by_its_own_word = code == FencedError.exit_code
            if by_its_own_word or self._failures.count(code, now - self._started_s):
                self.failure = last_words(self._controller)
                why = "by its own word" if by_its_own_word else "it fails each time"
                self._say(f"{death(self._controller)} is not started again: {why}")
                return
            self._due_s = max(now, self._started_s + RESTART_EVERY_S)
            self._say(f"{death(self._controller)} is started again; meanwhile the consumers read on what they own")
        if now >= self._due_s:
            self.start()

    def end(self, interrupt: StopFlag) -> list[str]:
        """First the controller, which would start ended consumers again; then these drain and end."""
        problems = end_in_order(self._controller, _END_TIMEOUT_S, interrupt)
        killed = self._fleet.end_all(self._drain_timeout_s, lambda: interrupt.is_set)
        logs = self._layout.consumer_logs
        return problems + [f"consumer {number} did not end in order and was killed: see {logs}" for number in killed]

    def kill(self) -> None:
        """Kills the controller and whatever consumers there are."""
        self._controller.kill()
        self._fleet.end_all(0.0, lambda: True)
