"""The group controlled by `kgs control`: one process that starts the consumers on this machine."""

import os
from collections.abc import Mapping

from kgs_core.config import Settings
from kgs_core.demo.layout import Layout
from kgs_core.demo.supervised_process import SupervisedProcess
from kgs_core.demo.supervisor import GroupControl, Say
from kgs_core.errors import FencedError
from kgs_core.fleet.local import LocalFleet, consume_command
from kgs_core.system.shutdown import StopFlag

_END_TIMEOUT_S = 15.0


class _Controller(SupervisedProcess):
    def start(self) -> None:
        super().start()
        self._say(f"controller started (pid {self.pid}): it measures the load and starts consumers for it")

    def why_no_more(self, code: int | None, lived_s: float) -> str:
        """One that another has taken over from is not started again either."""
        return "by its own word" if code == FencedError.exit_code else super().why_no_more(code, lived_s)


class BareControl(GroupControl):
    """Control by `kgs control`. Consumers are the controller's children and outlive it; they end with this process."""

    invitation = "kill -9 a consumer or the controller and watch: both come again, and nothing is lost or doubled"

    def __init__(self, layout: Layout, settings: Settings, environ: Mapping[str, str], say: Say) -> None:
        """Starts nothing yet. Raises `PermanentError` if the folder for logs cannot be made."""
        self._layout = layout
        self._drain_timeout_s = settings.consumer.batch_timeout_s
        command = layout.control_command(end_with=os.getpid())
        self._controller = _Controller("controller", command, layout.log_file("controller"), environ, say)
        # To end consumers, whoever has started them; it never starts one.
        self._fleet = LocalFleet(settings, consume_command(layout.config_file), layout.consumer_logs, environ)

    @property
    def state(self) -> str:
        """Its pid, or how it is without one."""
        pid = self._controller.pid  # asked once: it may end in between
        return self._controller.trouble or "no controller" if pid is None else f"controller pid {pid}"

    @property
    def failure(self) -> str:
        """Why the controller is not started again."""
        return self._controller.failure

    def start(self) -> None:
        """Starts the controller."""
        self._controller.start()

    def look_after(self) -> None:
        """Starts a dead controller again."""
        self._controller.look_after()

    def end(self, interrupt: StopFlag) -> list[str]:
        """First the controller, which would start ended consumers again; then these drain and end."""
        problems = self._controller.end(_END_TIMEOUT_S, interrupt)
        killed = self._fleet.end_all(self._drain_timeout_s, lambda: interrupt.is_set)
        logs = self._layout.consumer_logs
        return problems + [f"consumer {number} did not end in order and was killed: see {logs}" for number in killed]

    def kill(self) -> None:
        """Kills the controller and whatever consumers there are."""
        self._controller.kill()
        self._fleet.end_all(0.0, lambda: True)
