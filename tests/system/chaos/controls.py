"""The controller, bare or under Dagster: kept alive as a supervisor does, and what of it can be struck."""

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from tests.system.dagster_room import DagsterRoom

AGAIN_S = 2.0


class ChaosControl(ABC):
    """What decides who reads what."""

    @abstractmethod
    def keep(self) -> None:
        """Start what is missing."""

    @abstractmethod
    def processes(self) -> dict[str, psutil.Process]:
        """What lives of it, by name; runs and consumers left out."""

    @abstractmethod
    def end(self) -> list[str]:
        """End it in order; what did not go as it should."""

    @abstractmethod
    def kill(self) -> None:
        """At once, with all that it has started and nobody else ends."""


class BareControl(ChaosControl):
    """`kgs control`, of which there may be several for a while."""

    def __init__(self, command: Sequence[str], folder: Path, tell: Callable[[str], None]) -> None:
        self._command = tuple(command)
        self._folder = folder
        self._tell = tell
        self._lives: list[subprocess.Popen[bytes]] = []
        self._seen_dead: set[int] = set()
        self._due_s = 0.0

    def keep(self) -> None:
        for number, life in enumerate(self._lives, 1):
            if life.poll() is not None and life.pid not in self._seen_dead:
                self._seen_dead.add(life.pid)
                self._tell(f"controller {number} has ended with {life.returncode}")
                self._due_s = time.monotonic() + AGAIN_S
        if not self.lives and time.monotonic() >= self._due_s:
            self.start()

    @property
    def lives(self) -> list["subprocess.Popen[bytes]"]:
        """Those that run, the newest last."""
        return [life for life in self._lives if life.poll() is None]

    def start(self) -> None:
        """One more."""
        with (self._folder / f"control-{len(self._lives) + 1}.log").open("ab") as log:
            self._lives.append(subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True))

    def processes(self) -> dict[str, psutil.Process]:
        return {f"controller-{life.pid}": psutil.Process(life.pid) for life in self.lives}

    def end(self) -> list[str]:
        for life in (lives := self.lives):
            life.terminate()
        return [f"controller {life.pid} ended with {code}" for life in lives if (code := life.wait(60)) not in (0, 3)]

    def kill(self) -> None:
        for life in self._lives:
            life.kill()
            life.wait(10)


class DagsterControl(ChaosControl):
    """Dagster's code server, daemon and webserver; every consumer is a run."""

    def __init__(self, folder: Path, config: Path) -> None:
        self.room = DagsterRoom(folder, config)
        self.room.start()

    def keep(self) -> None:
        for process in (self.room.code_server, self.room.daemon, self.room.webserver):
            process.look_after()

    def processes(self) -> dict[str, psutil.Process]:
        found = {}
        for process in (self.room.code_server, self.room.daemon, self.room.webserver):
            with suppress(psutil.Error):
                if process.pid is not None:
                    found[process.name] = psutil.Process(process.pid)
        return found

    def rebalances(self) -> list[psutil.Process]:
        """The processes of runs that rebalance now."""
        wanted = 'pipelineName: "rebalance_job", statuses: [STARTED]'
        found = self.room.ask(f"{{ runsOrError(filter: {{{wanted}}}) {{ ... on Runs {{ results {{ runId }} }} }} }}")
        titles = {f"kgs-{run['runId'][:8]}" for run in found["runsOrError"]["results"]}
        return [process for process in psutil.process_iter() if _title(process.pid) in titles]

    def end(self) -> list[str]:
        self.room.close()
        return []

    def kill(self) -> None:
        self.room.close()


def _title(pid: int) -> str:
    with suppress(OSError):
        return (Path("/proc") / str(pid) / "comm").read_text().strip()
    return ""


MARK = "KGS_CHAOS"
"""Variable in the environment of everything that a run of chaos has started, by which it is found whatever died."""


def marked(name: str) -> list[psutil.Process]:
    """All living processes of a run but this one."""
    mark = f"{MARK}={name}".encode()
    found = []
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if pid != os.getpid() and mark in (Path("/proc") / str(pid) / "environ").read_bytes().split(b"\0"):
                found.append(psutil.Process(pid))
    return found
