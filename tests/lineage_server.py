"""OpenLineage backend on loopback, for tests: it keeps what it is sent, and may refuse, be late or hang."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LineageServer:
    """A running backend.

    Attributes:
        events: what was taken, in order.
        authorizations: header of each question.
        asked: how many questions came, also those that were refused.
        status: that it answers; None: it hangs until it is closed.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.authorizations: list[str | None] = []
        self.asked = 0
        self.status: int | None = 200
        self._closed = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.asked += 1
                server.authorizations.append(self.headers.get("Authorization"))
                if server.status is None:
                    server._closed.wait(30)
                    return
                if server.status < 300 and self.path == "/api/v1/lineage":
                    server.events.append(json.loads(body))
                with suppress(OSError):  # whoever asked has gone
                    self.send_response(server.status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._closed.set()
        self._http.shutdown()
        self._http.server_close()


@contextmanager
def lineage_server() -> Iterator[LineageServer]:
    """A backend that ends with the block."""
    server = LineageServer()
    try:
        yield server
    finally:
        server.close()
