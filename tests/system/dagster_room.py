"""A whole Dagster of three processes for a group on a real broker, each of which may be killed."""

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kgs_core.demo.dagster_control import DagsterHome, is_open
from kgs_core.demo.supervised_process import SupervisedProcess
from kgs_core.system.tcp_ports import PortReservation
from tests.waiting import wait_until

UP_S = 120.0
_KEPT = ("dagster.yaml", "workspace.yaml")


class DagsterRoom:
    """Code server, daemon and webserver; started again by the test that kills them.

    Attributes:
        code_server: parent of every run.
        daemon: asks sensors, launches runs.
        webserver: the UI.
    """

    def __init__(self, folder: Path, config: Path) -> None:
        self._ports = PortReservation()
        self.home = DagsterHome(folder / "dagster", self._ports.reserve(), self._ports.reserve())
        self.home.prepare()
        self._environ = environ = self.home.environ(os.environ, config)

        def kept(name: str, command: list[str]) -> SupervisedProcess:
            return SupervisedProcess(name, command, folder / f"{name}.log", environ, print)

        self.code_server = kept("code-server", self.home.code_server_command())
        self.daemon = kept("daemon", self.home.daemon_command())
        self.webserver = kept("webserver", self.home.webserver_command())

    def start(self) -> None:
        """All of them, and wait until they answer."""
        subprocess.run(self.home.storage_command(), env=self._environ, check=True, capture_output=True, timeout=UP_S)
        self.code_server.start()
        wait_until(lambda: is_open(self.home.code_port), UP_S, "the definitions are loaded")
        self.daemon.start()
        self.webserver.start()
        self.wait_up()

    def wait_up(self) -> None:
        wait_until(lambda: is_open(self.home.code_port), UP_S, "the definitions are loaded")
        wait_until(lambda: self.home.open_runs() is not None, UP_S, "the webserver answers")

    def kill(self, *processes: SupervisedProcess) -> None:
        """SIGKILL of the process alone: what it has started lives on."""
        for process in processes:
            assert process.pid is not None
            os.kill(process.pid, 9)
            wait_until(lambda gone=process: gone.pid is None, 20, f"{process.name} is dead")

    def count_runs(self, job: str, *statuses: str) -> int:
        """How many runs of a job have one of these statuses."""
        wanted = f'pipelineName: "{job}", statuses: [{", ".join(statuses)}]'
        found = self.ask(f"{{ runsOrError(filter: {{{wanted}}}) {{ ... on Runs {{ results {{ runId }} }} }} }}")
        return len(found["runsOrError"]["results"])

    def forget(self) -> None:
        """Delete all that Dagster remembers, as a lost disk does; nothing of it may run but consumers."""
        for path in self.home.directory.iterdir():
            while path.name not in _KEPT and path.exists():
                with suppress(OSError):  # who ends at this moment removes its database's log, or makes it once more
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def ask(self, query: str) -> dict[str, Any]:
        """See `ask`."""
        return ask(self.home.address, query)

    def close(self) -> None:
        """End all of it, with every run."""
        for process in (self.daemon, self.webserver, self.code_server):
            process.kill()
        self._ports.release()


@contextmanager
def dagster_room(folder: Path, config: Path) -> Iterator[DagsterRoom]:
    """Running while the block does."""
    room = DagsterRoom(folder, config)
    try:
        room.start()
        yield room
    finally:
        room.close()


def ask(address: str, query: str) -> dict[str, Any]:
    """What a webserver answers, as it does to the UI."""
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(f"{address}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)["data"]
    return found
