"""Answers of a server over HTTP, bounded in time and size: one that drips, or never ends, holds nobody up."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from kgs_core.system.bounded_call import answer_within

MOST_BYTES = 20_000_000
STEPS = 3
"""To connect, to send and to hear: each has a limit of its own, and together they have so many times that."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said. `tree`: the JSON object that it sent; None: it sent something else."""

    status: int
    tree: Mapping[str, Any] | None

    @property
    def code(self) -> str:
        """Name of the error, in either form that Unity Catalog has; empty where it names none."""
        return self._text("error_code", "type")

    @property
    def message(self) -> str:
        """Its words on the error; empty where it has none."""
        return self._text("message", "message")

    def _text(self, name: str, inner_name: str) -> str:
        tree = self.tree or {}
        inner = tree.get("error")
        found = tree.get(name) or (inner.get(inner_name) if isinstance(inner, Mapping) else None)
        return found if isinstance(found, str) else ""


def ask(client: httpx2.Client, method: str, url: str, body: Mapping[str, Any] | None, timeout_s: float) -> Answer:
    """The answer to one question.

    `timeout_s`: how long the whole of it may take, beside the client's own limits for each step.

    Raises:
        httpx2.HTTPError, httpx2.InvalidURL, OSError: there is none, or it is too long, or too late.
    """
    return answer_within(STEPS * timeout_s, lambda: _heard(client, method, url, body, timeout_s), "catalogue")


def _heard(client: httpx2.Client, method: str, url: str, body: Mapping[str, Any] | None, timeout_s: float) -> Answer:
    ends, found = time.monotonic() + timeout_s, bytearray()
    with client.stream(method, url, json=body) as response:
        for piece in response.iter_bytes():
            found += piece
            if time.monotonic() > ends:
                raise httpx2.ReadTimeout(f"no whole answer within {timeout_s:g} s")
            if len(found) > MOST_BYTES:
                raise httpx2.DecodingError(f"an answer of more than {MOST_BYTES} bytes")
    try:
        tree = json.loads(found)
    except (ValueError, RecursionError):
        tree = None
    return Answer(response.status_code, tree if isinstance(tree, dict) else None)
