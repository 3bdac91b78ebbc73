"""A benchmarked program as the benchmark sees it: a child process that takes requests over a socket.

Requests and answers are lines of JSON. A socket, not stdout: there the JVM prints what it likes.
"""

import json
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgs_core.errors import PermanentError, TransientError
from kgs_core.system.subprocesses import ChildProcess

_ANSWER_TIMEOUT_S = 900.0
_END_TIMEOUT_S = 20.0
_LINES_SHOWN = 15
_CHUNK = 65_536


class BenchProcess:
    """One program, started once; a context manager that ends it.

    Attributes:
        started_s: when it was started, on `time.monotonic`.
    """

    def __init__(
        self, name: str, command: Sequence[str], directory: Path, environ: Mapping[str, str] | None = None
    ) -> None:
        """Starts nothing yet.

        Args:
            command: the program; the socket's path is added as its last argument.
            directory: for log and socket; its path must be short (a socket's may have about 100 characters).
        """
        self.name = name
        self.started_s = 0.0
        self._socket_file = directory / f"{name}.socket"
        self._child = ChildProcess(name, [*command, str(self._socket_file)], directory / f"{name}.log", environ)
        self._connection: socket.socket | None = None
        self._buffer = b""

    @property
    def session(self) -> int:
        """The id of its session, which is its driver's process id.

        Raises:
            PermanentError: it has ended.
        """
        pid = self._child.pid
        if pid is None:
            raise self._dead()
        return pid

    def start(self) -> Mapping[str, Any]:
        """Start it and wait for its first message.

        Raises:
            PermanentError: it ended instead (with the end of its log).
            TransientError: it said nothing.
        """
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self._socket_file))
            server.listen(1)
            server.settimeout(1.0)
            self.started_s = time.monotonic()
            self._child.start()
            while self._connection is None:
                try:
                    self._connection, _ = server.accept()
                except TimeoutError:
                    if self._child.pid is None:
                        raise self._dead() from None
        self._connection.settimeout(_ANSWER_TIMEOUT_S)
        return self._hear()

    def request(self, what: str, **details: Any) -> dict[str, Any]:
        """Send a request and wait for its answer.

        Raises:
            PermanentError: it ended instead (with the end of its log).
            TransientError: no answer in a quarter of an hour.
        """
        if self._connection is None:
            raise self._dead()
        try:
            self._connection.sendall(json.dumps({"do": what, **details}).encode() + b"\n")
        except OSError as e:
            raise self._dead() from e
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            try:
                new = self._connection.recv(_CHUNK) if self._connection else b""
            except TimeoutError as e:
                raise TransientError(f"bench {self.name}: no answer in {_ANSWER_TIMEOUT_S:g} s") from e
            except OSError:
                new = b""
            if not new:
                raise self._dead()
            self._buffer += new
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _dead(self) -> PermanentError:
        self._child.wait(2)
        tail = self._child.log_tail(_LINES_SHOWN)
        return PermanentError(f"bench {self.name}: ended by itself; its log ends:\n{tail}")

    def end(self) -> None:
        """End it; what is left of it is killed."""
        if self._connection is not None:
            self._connection.close()  # the program ends when nobody can send requests any more
            self._connection = None
            self._child.wait(_END_TIMEOUT_S)
        self._child.end(_END_TIMEOUT_S)
        self._socket_file.unlink(missing_ok=True)

    def __enter__(self) -> "BenchProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
