"""Dagster in a demonstration: a folder of its own, three processes, and a webserver that says which runs go on."""

import json
import shutil
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import yaml

from kgs_core.adapters.system.tcp_ports import HOST
from kgs_core.errors import PermanentError

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


@dataclass(frozen=True, slots=True)
class DagsterHome:
    """Home of an instance of Dagster.

    Attributes:
        directory: absolute; what Dagster calls DAGSTER_HOME.
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
        return kept | {
            "DAGSTER_HOME": str(self.directory),
            "KGS_CONFIG": str(config_file),
            "DAGSTER_GRPC_TIMEOUT_SECONDS": str(_RUN_START_TIMEOUT_S),  # several runs may start on two cores at once
        }

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

    def serves_code(self) -> bool:
        """Whether the code server has loaded the definitions."""
        return _is_open(self.code_port)

    def serves_people(self) -> bool:
        """Whether the UI is up."""
        return _is_open(self.web_port)

    def open_runs(self) -> frozenset[str] | None:
        """The runs that have not ended; None where the webserver does not tell."""
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


def _is_open(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), 0.2):
            return True
    except OSError:
        return False
