"""An HTTP server on a free port of loopback, for tests that play somebody else's service."""

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kgs_core.system.closing import Closing


class QuietHandler(BaseHTTPRequestHandler):
    """Handler that logs nothing, and does not mind that whoever asked has gone."""

    def body(self) -> bytes:
        """What was sent with the question."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(self, status: int, body: bytes = b"", content_type: str = "application/json") -> None:
        """Answer the question."""
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class LoopbackServer(Closing):
    """A running server, a thread for each question; it ends with the block."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def port(self) -> int:
        return self._http.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
