"""Token endpoint of an OpenID Connect provider, for tests: client credentials in, a token out, or a fault."""

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from tests.loopback_http import LoopbackServer, QuietHandler


class TokenServer(LoopbackServer):
    """A running provider.

    Attributes:
        clients: client id -> secret.
        life_s: of a token.
        fault: what it answers instead of a token, where it is not None: a status.
        given: client ids that got a token, in order.
        asked: how often it was asked.
        before: called before an answer.
        body: what it answers instead of JSON of its own, where it is not None.
    """

    def __init__(self) -> None:
        self.clients = {"kgs": "s3cret"}
        self.life_s = 300.0
        self.fault: int | None = None
        self.given: list[str] = []
        self.asked = 0
        self.before: Callable[[], object] = lambda: None
        self.body: bytes | None = None
        server = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:  # noqa: N802 - the name that http.server asks for
                form = parse_qs(self.body().decode())
                server.before()
                status, answer = server.answer(self.headers.get("Authorization", ""), form)
                self.reply(status, json.dumps(answer).encode() if server.body is None else server.body)

        super().__init__(Handler)

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Status and body of a request for a token."""
        user, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        self.asked += 1
        if self.fault is not None:
            return self.fault, {"error": "temporarily_unavailable"}
        if form.get("grant_type") != ["client_credentials"] or self.clients.get(user) != secret:
            return 401, {"error": "invalid_client", "error_description": "no such client, or another secret"}
        self.given.append(user)
        return 200, {
            "access_token": f"{user}-{len(self.given)}",
            "token_type": "Bearer",
            "expires_in": int(self.life_s),
        }
