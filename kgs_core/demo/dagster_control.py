"""The group controlled by Dagster: its sensor decides, its runs hand over, and every consumer is one of them."""

import time
from collections.abc import Mapping

from kgs_core.adapters.group.operator_topic import OperatorTopicWriter
from kgs_core.adapters.group.topics import GroupTopic, GroupTopics
from kgs_core.adapters.kafka.admin import KafkaAdmin
from kgs_core.adapters.kafka.client_config import admin_client
from kgs_core.adapters.system.shutdown import StopFlag
from kgs_core.adapters.system.tcp_ports import PortReservation
from kgs_core.config import Settings
from kgs_core.demo.dagster_home import WEB_PORT, DagsterHome
from kgs_core.demo.layout import Layout
from kgs_core.demo.supervised_process import SupervisedProcess
from kgs_core.demo.supervisor import Say
from kgs_core.errors import PortError
from kgs_core.protocol import DesiredState, RunState

_END_TIMEOUT_S = 15.0
_LEAVE_S = 3.0
_DECISION_S = 60.0
"""The sensor sees the wish, a rebalance run is started and assignments: as long as that may take on a busy machine."""
_LOOK_EVERY_S = 0.5


class DagsterControl:
    """A `GroupControl`. Consumers are children of the code server: they end with this process, whatever ends it."""

    invitation = (
        "kill -9 a consumer, or terminate its run in the UI, and watch: it comes again, and nothing is lost or doubled"
    )

    def __init__(self, scene: Layout, settings: Settings, environ: Mapping[str, str], say: Say) -> None:
        """Starts nothing yet.

        Raises:
            PermanentError: Dagster's folder cannot be made, or no port is free.
        """
        self._say = say
        self._settings = settings
        self._ports = PortReservation()
        self._home = DagsterHome(scene.dagster_home, self._ports.reserve(), self._ports.reserve(WEB_PORT))
        self._home.prepare()
        inner = self._home.environ(environ, scene.config_file)

        def kept(name: str, command: list[str]) -> SupervisedProcess:
            return SupervisedProcess(name, command, scene.log_file(name.replace(" ", "-")), inner, say)

        self._code_server = kept("code server", self._home.code_server_command())
        self._daemon = kept("daemon", self._home.daemon_command())
        self._webserver = kept("webserver", self._home.webserver_command())
        self._is_up = False

    @property
    def state(self) -> str:
        """The UI's address, and what is dead."""
        troubles = [each.trouble for each in (self._code_server, self._daemon, self._webserver) if each.trouble]
        return ", ".join([f"Dagster {'at' if self._is_up else 'starts at'} {self._home.address}", *troubles])

    @property
    def failure(self) -> str:
        """Why one of the three is not started again."""
        return next((each.failure for each in (self._code_server, self._daemon, self._webserver) if each.failure), "")

    def start(self) -> None:
        """Starts the code server; the others come when it has loaded the definitions."""
        self._code_server.start()
        self._say(
            f"Dagster starts (code server pid {self._code_server.pid}); its UI will be at {self._home.address}. Its "
            "sensor measures the load and starts consumers for it"
        )

    def look_after(self) -> None:
        """Starts what is missing, or has died."""
        for process in (self._code_server, self._daemon, self._webserver):
            process.look_after()
        # Not before: a daemon that finds no code looks for it again only after a while
        if not self._daemon.has_begun and self._home.serves_code():
            self._daemon.start()
            self._webserver.start()
            self._say(f"definitions loaded; daemon pid {self._daemon.pid}, webserver pid {self._webserver.pid}")
        if not self._is_up and self._home.serves_people():
            self._is_up = True
            self._say(f"Dagster's UI is at {self._home.address}")

    def end(self, interrupt: StopFlag) -> list[str]:
        """First the consumers, as `kgs stop` does it: Dagster is what ends them. Then Dagster itself."""
        problems = self._end_consumers(interrupt) if self._daemon.has_begun else []
        # No run is open: what goes on, for up to a minute, is a look of the load sensor. The daemon would wait for it
        self._daemon.leave(_LEAVE_S)
        problems += self._webserver.end(_END_TIMEOUT_S, interrupt)
        self._code_server.kill()
        return problems

    def kill(self) -> None:
        """Kills Dagster, with all runs."""
        for process in (self._daemon, self._code_server, self._webserver):
            process.kill()
        self._ports.release()

    def _end_consumers(self, interrupt: StopFlag) -> list[str]:
        self._say("the group is told to stop: consumers finish their batches, their runs end")
        try:
            self._wish_stop()
        except PortError as e:
            return [f"the consumers could not be told to end, and were killed: {e}"]
        deadline = time.monotonic() + self._settings.consumer.batch_timeout_s + _DECISION_S
        runs: frozenset[str] | None = None
        while not interrupt.is_set and time.monotonic() < deadline:
            self.look_after()  # whoever is to end them must live
            if (runs := self._home.open_runs()) == frozenset():
                return []
            interrupt.wait(_LOOK_EVERY_S)
        which = "the runs" if runs is None else f"{len(runs)} runs"
        return [f"{which} did not end in order and were killed: see {self._home.directory}"]

    def _wish_stop(self) -> None:
        writer = OperatorTopicWriter(
            GroupTopics(self._settings, KafkaAdmin(admin_client(self._settings)), [GroupTopic.WISHES])
        )
        try:
            writer.write(DesiredState(RunState.STOPPED, "kgs demo", round(time.time() * 1000)))
        finally:
            writer.close()
