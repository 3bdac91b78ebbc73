"""Toxiproxy on this machine: delays, black holes and resets between clients and servers."""

import http.client
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kgs_core.errors import PermanentError
from kgs_core.system.subprocesses import ChildProcess
from kgs_core.system.tcp_ports import HOST, PortReservation

UP, DOWN = "upstream", "downstream"
"""Towards the server, and towards the client."""
_START_TIMEOUT_S = 20.0
_ANSWER_TIMEOUT_S = 10.0
_POLL_S = 0.05
_QUEUE_FILLERS = 4


def find_toxiproxy() -> Path | None:
    """The server's program: TOXIPROXY, beside this Python, or on PATH; None if this machine has none."""
    beside = Path(sys.executable).with_name("toxiproxy-server")
    found = os.environ.get("TOXIPROXY") or (str(beside) if beside.exists() else shutil.which("toxiproxy-server"))
    return None if found is None else Path(found)


class Proxy:
    """One proxy of a Toxiproxy server."""

    def __init__(self, server: "Toxiproxy", name: str, port: int) -> None:
        self.name = name
        self.port = port
        self._server = server

    def enable(self, is_enabled: bool = True) -> None:  # noqa: FBT001, FBT002
        """Accept connections, or end those that exist and refuse new ones."""
        self._server.ask("POST", f"/proxies/{self.name}", {"enabled": is_enabled})

    def add(self, kind: str, stream: str, **attributes: int) -> None:
        """Add a toxic, also to connections that exist.

        Args:
            kind: `timeout`, `latency`, `bandwidth`, `reset_peer`, `limit_data`, `slow_close` or `slicer`.
            attributes: as Toxiproxy names them; times in ms, rates in KB/s.
        """
        self._server.ask(
            "POST", f"/proxies/{self.name}/toxics", {"type": kind, "stream": stream, "attributes": attributes}
        )

    def black_hole(self, *streams: str) -> None:
        """Drop all data in these directions, both by default; connections stay open, new ones are accepted."""
        for stream in streams or (UP, DOWN):
            self.add("timeout", stream, timeout=0)

    def clear(self) -> None:
        """Remove every toxic. Connections that `black_hole` has cut are closed by that."""
        for toxic in self._server.ask("GET", f"/proxies/{self.name}/toxics"):
            self._server.ask("DELETE", f"/proxies/{self.name}/toxics/{toxic['name']}")


class Toxiproxy:
    """A Toxiproxy server; a context manager that ends it."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._ports = PortReservation()
        self._port = self._ports.reserve()
        command = [str(program), "-host", HOST, "-port", str(self._port)]
        self._child = ChildProcess("toxiproxy", command, folder / "toxiproxy.log")

    def proxy(self, name: str, port: int, upstream: int) -> Proxy:
        """A new proxy: connections to `port` are carried to port `upstream` of this machine."""
        self.ask("POST", "/proxies", {"name": name, "listen": f"{HOST}:{port}", "upstream": f"{HOST}:{upstream}"})
        return Proxy(self, name, port)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The server's answer.

        Raises:
            PermanentError: the server refuses.
        """
        connection = http.client.HTTPConnection(HOST, self._port, timeout=_ANSWER_TIMEOUT_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        if response.status >= http.client.BAD_REQUEST:
            raise PermanentError(f"toxiproxy: {method} {path}: {response.status} {text.strip()}")
        return json.loads(text) if text else None

    def __enter__(self) -> Self:
        self._child.start()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            with suppress(OSError):
                self.ask("GET", "/proxies")
                return self
            if self._child.pid is None or time.monotonic() > deadline:
                self._child.kill()
                raise PermanentError(f"toxiproxy: does not start: {self._child.log_tail(5)}")
            time.sleep(_POLL_S)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._child.kill()
        self._ports.release()


class DarkAddress:
    """An address that answers nothing, not even that it refuses, as of a machine without power; a context manager.

    The queue of its listening socket is full, so the kernel drops every further attempt to connect.
    """

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind((HOST, 0))
        self._listener.listen(0)
        self.port: int = self._listener.getsockname()[1]
        self._fillers = [socket.socket() for _ in range(_QUEUE_FILLERS)]
        for filler in self._fillers:
            filler.setblocking(False)  # noqa: FBT003 - no keyword
            filler.connect_ex((HOST, self.port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for each in (*self._fillers, self._listener):
            each.close()
