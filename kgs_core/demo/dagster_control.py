"""Control of the group by Dagster: its home, its three processes; every consumer is one of its runs."""

import json
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import yaml

from kgs_core.config import Settings
from kgs_core.demo.layout import Layout
from kgs_core.demo.supervised_process import SupervisedProcess
from kgs_core.demo.supervisor import GroupControl, Say
from kgs_core.errors import PermanentError, PortError
from kgs_core.group.protocol import DesiredState, RunState
from kgs_core.group.topics.operator_topic import operator_writer
from kgs_core.system.shutdown import StopFlag
from kgs_core.system.subprocesses import ChildProcess
from kgs_core.system.tcp_ports import HOST, PortReservation

WEB_PORT = 3000
"""Where people look for Dagster; another one where this is taken."""

_SETTINGS = Path(__file__).parents[1] / "files" / "dagster.yaml"
_LOCATION = "kgs"
_RUN_START_TIMEOUT_S = 180
_ANSWER_TIMEOUT_S = 10.0
_OPEN_RUNS = (
    "{ runsOrError(filter: {statuses: [NOT_STARTED, QUEUED, STARTING, STARTED, CANCELING]}) "
    "{ ... on Runs { results { runId } } } }"
)
_END_TIMEOUT_S = 15.0
_LEAVE_S = 3.0
_DECISION_S = 60.0
"""Until the sensor sees the desired state, a run has started and has written assignments, on a busy machine."""
_LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class DagsterHome:
    """Home of an instance of Dagster.

    Attributes:
        directory: absolute; what Dagster calls DAGSTER_HOME: its settings, database and logs of runs.
        code_port: where the code server serves our definitions.
        web_port: of the UI.
    """

    directory: Path
    code_port: int
    web_port: int

    @property
    def address(self) -> str:
        """The UI's."""
        return f"http://{HOST}:{self.web_port}"

    def prepare(self) -> None:
        """Make the folder, with the settings of one machine and the code server as the one place of code.

        Raises:
            PermanentError: it cannot be made, or this installation has lost its dagster.yaml.
        """
        if not _SETTINGS.is_file():
            raise PermanentError(f"{_SETTINGS}: not there: install kgs again, or `kgs demo --bare`")
        place = {"host": HOST, "port": self.code_port, "location_name": _LOCATION}
        try:
            self.directory.mkdir(parents=True)
            shutil.copyfile(_SETTINGS, self.directory / "dagster.yaml")
            self._workspace.write_text(yaml.safe_dump({"load_from": [{"grpc_server": place}]}))
        except OSError as e:
            raise PermanentError(f"{self.directory}: {e.strerror}: name another --directory") from e

    def environ(self, outer: Mapping[str, str], config_file: Path) -> dict[str, str]:
        """The environment of all three; nothing that the user has set for a Dagster of their own."""
        kept = {name: value for name, value in outer.items() if not name.startswith("DAGSTER_")}
        return (
            {"KGS_EXPERIMENTS": str(self.directory / "experiments")}
            | kept
            | {  # it shows experiments, too
                "DAGSTER_HOME": str(self.directory),
                "KGS_CONFIG": str(config_file),
                "DAGSTER_GRPC_TIMEOUT_SECONDS": str(
                    _RUN_START_TIMEOUT_S
                ),  # several runs may start on two cores at once
            }
        )

    def storage_command(self) -> list[str]:
        """Makes Dagster's tables; where two processes make them at once, none can read them ever after."""
        return [*_dagster("dagster"), "instance", "info"]

    def code_server_command(self) -> list[str]:
        """Loads the definitions, lets sensors look, and is the parent of every run."""
        rest = ["-m", "kgs_dagster.definitions", "--location-name", _LOCATION, "--use-python-environment-entry-point"]
        rest = [*rest, "--empty-working-directory"]  # else Dagster puts it on the path of the code
        return [*_dagster("dagster"), "api", "grpc", "-h", HOST, "-p", str(self.code_port), *rest]

    def daemon_command(self) -> list[str]:
        """Asks the sensors, launches the runs."""
        return [*_dagster("dagster._daemon"), "run", "-w", str(self._workspace)]

    def webserver_command(self) -> list[str]:
        """The UI."""
        return [*_dagster("dagster_webserver"), "-h", HOST, "-p", str(self.web_port), "-w", str(self._workspace)]

    def open_runs(self) -> frozenset[str] | None:
        """The runs that have not ended; None where the webserver does not answer."""
        connection = HTTPConnection(HOST, self.web_port, timeout=_ANSWER_TIMEOUT_S)
        try:
            body = json.dumps({"query": _OPEN_RUNS})
            connection.request("POST", "/graphql", body, {"Content-Type": "application/json"})
            tree = json.loads(connection.getresponse().read())
            return frozenset(run["runId"] for run in tree["data"]["runsOrError"]["results"])
        except (OSError, HTTPException, ValueError, KeyError, TypeError):
            return None
        finally:
            connection.close()

    @property
    def _workspace(self) -> Path:
        return self.directory / "workspace.yaml"


def _dagster(module: str) -> list[str]:
    """One of Dagster's commands of this very installation; -P: the working directory is not searched."""
    return [sys.executable, "-P", "-m", module]


def is_open(port: int) -> bool:
    """Whether something listens at a port of this machine."""
    try:
        with socket.create_connection((HOST, port), 0.2):
            return True
    except OSError:
        return False


class DagsterControl(GroupControl):
    """Control by Dagster. Consumers are children of the code server: they end with this process, whatever ends it."""

    invitation = (
        "kill -9 a consumer, or terminate its run in the UI, and watch: it comes again, and nothing is lost or doubled"
    )

    def __init__(self, layout: Layout, settings: Settings, environ: Mapping[str, str], say: Say) -> None:
        """Starts nothing yet. Raises `PermanentError` if Dagster's folder cannot be made, or no port is free."""
        self._say = say
        self._settings = settings
        self._ports = PortReservation()
        self._home = DagsterHome(layout.directory / "dagster", self._ports.reserve(), self._ports.reserve(WEB_PORT))
        self._home.prepare()
        inner = self._home.environ(environ, layout.config_file)

        def kept(name: str, command: list[str]) -> SupervisedProcess:
            return SupervisedProcess(name, command, layout.log_file(name.replace(" ", "-")), inner, say)

        self._storage = ChildProcess("storage", self._home.storage_command(), layout.log_file("storage"), inner)
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
        """Has the tables made; then comes the code server, and the others when it has loaded the definitions."""
        self._storage.start()
        self._say(
            f"Dagster starts; its UI will be at {self._home.address}. Its sensor measures the load and starts "
            "consumers for it"
        )

    def look_after(self) -> None:
        """Starts what is missing, or has died."""
        for process in (self._code_server, self._daemon, self._webserver):
            process.look_after()
        if not self._code_server.has_begun and self._storage.exit_code is not None:
            self._code_server.start()
        # Not before: a daemon that finds no code looks for it again only after a while
        if not self._daemon.has_begun and self._code_server.has_begun and is_open(self._home.code_port):
            self._daemon.start()
            self._webserver.start()
            self._say(f"definitions loaded; daemon pid {self._daemon.pid}, webserver pid {self._webserver.pid}")
        if not self._is_up and is_open(self._home.web_port):
            self._is_up = True
            self._say(f"Dagster's UI is at {self._home.address}")

    def end(self, interrupt: StopFlag) -> list[str]:
        """First the consumers, as `kgs stop` does it: Dagster is what ends them. Then Dagster itself."""
        problems = self._end_consumers(interrupt) if self._daemon.has_begun else []
        # No run is open. The load sensor may still look for up to a minute, and the daemon would wait for it
        self._daemon.end(_LEAVE_S, interrupt)  # killed then, which is no problem
        problems += self._webserver.end(_END_TIMEOUT_S, interrupt)
        self._code_server.kill()
        return problems

    def kill(self) -> None:
        """Kills Dagster, with all runs."""
        for process in (self._storage, self._daemon, self._code_server, self._webserver):
            process.kill()
        self._ports.release()

    def _end_consumers(self, interrupt: StopFlag) -> list[str]:
        self._say("the group is told to stop: consumers finish their batches, their runs end")
        try:
            self._write_stopped()
        except PortError as e:
            return [f"the consumers could not be told to end, and were killed: {e}"]
        deadline = time.monotonic() + self._settings.consumer.batch_timeout_s + _DECISION_S
        runs: frozenset[str] | None = None
        while not interrupt.is_set and time.monotonic() < deadline:
            self.look_after()  # Dagster ends them, so it must run
            if (runs := self._home.open_runs()) == frozenset():
                return []
            interrupt.wait(_LOOK_EVERY_S)
        which = "the runs" if runs is None else f"{len(runs)} runs"
        return [f"{which} did not end in order and were killed: see {self._home.directory}"]

    def _write_stopped(self) -> None:
        with operator_writer(self._settings) as writer:
            writer.write(DesiredState(RunState.STOPPED, "kgs demo", round(time.time() * 1000)))
