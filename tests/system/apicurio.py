"""Apicurio Registry on this machine: the schema registry with Confluent's interface that can be had as a package."""

import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kgs_core.system.subprocesses import ChildProcess
from kgs_core.system.tcp_ports import HOST, PortReservation
from tests.system.maven_archives import JAVA, SMALL_JVM, unpacked
from tests.waiting import wait_until

VERSION = "3.3.3"


class Apicurio:
    """A registry that keeps what it knows in a file; can be killed and started again."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._ports = PortReservation()
        port = self._ports.reserve()
        self.url = f"http://{HOST}:{port}/apis/ccompat/v7"
        options = {
            "quarkus.http.port": port,
            "quarkus.http.host": HOST,
            "quarkus.management.port": self._ports.reserve(),  # else 9000, on every address
            "quarkus.management.host": HOST,
            "apicurio.storage.kind": "sql",
            "apicurio.storage.sql.kind": "h2",
            "apicurio.datasource.url": f"jdbc:h2:file:{folder / 'registry'}",
        }
        command = [str(JAVA), *SMALL_JVM, *(f"-D{k}={v}" for k, v in options.items()), "-jar", "quarkus-run.jar"]
        self._child = ChildProcess("apicurio", command, folder / "apicurio.log", dict(os.environ), program)

    def start(self) -> None:
        """Returns when it answers; it may be running already."""
        if self._child.pid is None:
            self._child.start()
        wait_until(self._answers, 60, f"Apicurio answers: {self._child.log_tail(5)}")

    def kill(self) -> None:
        self._child.kill()

    def close(self) -> None:
        self.kill()
        self._ports.release()

    def _answers(self) -> bool:
        assert self._child.pid is not None, self._child.log_tail(20)
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def running_apicurio(folder: Path) -> Iterator[Apicurio]:
    """Running while the block does."""
    registry = Apicurio(unpacked("io.apicurio", "apicurio-registry-app", VERSION, "all"), folder)
    try:
        registry.start()
        yield registry
    finally:
        registry.close()
