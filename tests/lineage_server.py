"""OpenLineage backend on loopback, for tests: it keeps what it is sent, and may refuse, be late or hang."""

import json
import threading
from typing import Any

from tests.loopback_http import LoopbackServer, QuietHandler


class LineageServer(LoopbackServer):
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

        class Handler(QuietHandler):
            def do_POST(self) -> None:  # noqa: N802 - the name that http.server asks for
                body = self.body()
                server.asked += 1
                server.authorizations.append(self.headers.get("Authorization"))
                if server.status is None:
                    server._closed.wait(30)
                    return
                if server.status < 300 and self.path == "/api/v1/lineage":
                    server.events.append(json.loads(body))
                self.reply(server.status)

        super().__init__(Handler)

    def close(self) -> None:
        self._closed.set()
        super().close()
