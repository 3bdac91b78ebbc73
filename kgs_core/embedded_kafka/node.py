"""One process of the embedded Kafka: format, start, readiness, end."""

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kgs_core.errors import PermanentError
from kgs_core.system.files import append_privately
from kgs_core.system.subprocesses import ChildProcess

_JVM = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",  # a file in the system's temporary directory
)
_READY = b"Kafka Server started"
_FORMAT_TIMEOUT_S = 60.0
_READY_TIMEOUT_S = 120.0
_POLL_S = 0.05
_LINES_READ, _LINES_SHOWN = 1000, 20


@dataclass(frozen=True, slots=True)
class Launcher:
    """Launcher of a JVM with Kafka's classes.

    Attributes:
        options: of the JVM, besides those of every node.
    """

    java: Path
    jars: Path
    log_settings: Path
    options: tuple[str, ...]

    def command(self, *arguments: str) -> list[str]:
        """The command line that runs a main class."""
        logging = f"-Dlog4j2.configurationFile={self.log_settings}"
        temporary = f"-Djava.io.tmpdir={self.log_settings.parent}"  # a killed JVM leaves its unpacked libraries there
        return [str(self.java), *_JVM, *self.options, logging, temporary, "-cp", f"{self.jars}/*", *arguments]


class KafkaNode(ChildProcess):
    """One broker and controller. What fails raises `PermanentError`, with the end of its log."""

    def __init__(self, node_id: int, directory: Path, settings: Mapping[str, str], launcher: Launcher) -> None:
        self.node_id = node_id
        self._directory = directory
        self._launcher = launcher
        self._read_from = 0  # bytes of the log that earlier starts wrote
        self._properties = directory / "server.properties"
        command = launcher.command("kafka.Kafka", str(self._properties))
        super().__init__("kafka", command, directory / "node.log", folder=directory)  # for a crash report of the JVM
        directory.mkdir(parents=True, exist_ok=True)
        own = {**settings, "node.id": str(node_id), "log.dirs": str(self.data)}
        text = "".join(f"{key}={value}\n" for key, value in own.items())
        self._properties.write_text(text.replace("\\", "\\\\"))

    @property
    def data(self) -> Path:
        """Where the node keeps its logs."""
        return self._directory / "data"

    def begin_format(self, cluster_id: str) -> "subprocess.Popen[bytes] | None":
        """Starts writing the node's identity, to be ended by the caller; None when an earlier life has done that."""
        if (self.data / "meta.properties").exists():  # the formatter writes this file last
            return None
        arguments = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._properties))
        with append_privately(self.log_file) as log:
            return subprocess.Popen(
                self._launcher.command(*arguments),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C in the terminal is for the parent, which ends it
            )

    def end_format(self, process: "subprocess.Popen[bytes]") -> None:
        """Waits for what `begin_format` started.

        Raises:
            PermanentError: it failed or takes too long.
        """
        try:
            failed = process.wait(_FORMAT_TIMEOUT_S) != 0
        except subprocess.TimeoutExpired:
            failed = True
        if failed:
            raise self._error("cannot be formatted")

    def begin(self) -> None:
        """Starts the process, unless it runs."""
        if self.pid is None:
            self._read_from = self.log_file.stat().st_size if self.log_file.exists() else 0
            self.start()

    def wait_ready(self) -> None:
        """Returns when the broker serves.

        Raises:
            PermanentError: the process ended or takes too long.
        """
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while not self._says_ready():
            self.check_running()
            if time.monotonic() > deadline:
                raise self._error(f"not started in {_READY_TIMEOUT_S:.0f} s")
            time.sleep(_POLL_S)

    def check_running(self) -> None:
        """Returns when the process runs.

        Raises:
            PermanentError: it does not (with the end of its log).
        """
        if self.pid is None:
            raise self._error("has ended")

    def _says_ready(self) -> bool:
        with self.log_file.open("rb") as log:
            log.seek(self._read_from)
            return _READY in log.read()

    def _error(self, what: str) -> PermanentError:
        lines = [line for line in self.log_tail(_LINES_READ).splitlines() if not line.startswith("\tat ")]  # stacks
        tail = "\n".join(lines[-_LINES_SHOWN:])
        return PermanentError(f"Kafka node {self.node_id}: {what}: see {self.log_file}, which ends:\n{tail}")
