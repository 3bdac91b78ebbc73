"""A schema registry that goes away, fails, deletes and knows GUIDs, when told to."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import NAMESPACE_URL, uuid5

from bench.registry_stub import Reply, StubRegistry, not_found
from kgs_core.registry import client


@dataclass(slots=True)
class RegistryFaults:
    """What the registry does wrong, until it is told otherwise.

    Attributes:
        status: HTTP status that every question gets; None: none does.
        lost_replies: how many questions from now on are heard and not answered.
    """

    status: int | None = None
    delay_s: float = 0.0
    lost_replies: int = 0


class FaultyRegistry(StubRegistry):
    """Keeps its port and its schemas while it is down.

    Attributes:
        faults: what it does wrong; may be changed at any time.
        asked: path and query of every question that was heard, in order.
    """

    def __init__(self) -> None:
        self.faults = RegistryFaults()
        self.asked: list[str] = []
        self._deleted: set[str] = set()
        self._is_up = True
        super().__init__()
        client._client.cache_clear()  # its port may have been another's, whose schemas a process keeps by address

    def go_up(self) -> None:
        """Answer (again)."""
        if not self._is_up:
            self._server, self._is_up = self._serving(), True

    def go_down(self) -> None:
        """Refuse every connection, until `go_up`."""
        if self._is_up:
            self._is_up = False
            self._server.shutdown()
            self._server.server_close()

    def close(self) -> None:
        self.go_down()
        self._ports.release()

    def register(self, subject: str, *args: Any, **more: Any) -> int:
        self._deleted.discard(subject)
        return super().register(subject, *args, **more)

    def guid(self, number: int) -> str:
        """GUID of the schema of this id."""
        return str(uuid5(NAMESPACE_URL, json.dumps(self._contents.schemas[number], sort_keys=True)))

    def delete(self, subject: str) -> None:
        """Delete a subject softly: its schemas are still found by id, and by version if asked for with `deleted`."""
        self._deleted.add(subject)

    def answer(self, path: str) -> Reply | None:
        self.asked.append(path)
        time.sleep(self.faults.delay_s)
        if self.faults.lost_replies > 0:
            self.faults.lost_replies -= 1
            return None
        if self.faults.status is not None:
            return self.faults.status, {"error_code": self.faults.status * 100 + 1, "message": "told to fail"}
        url = urlsplit(path)
        query = {name: found[-1] for name, found in parse_qs(url.query).items()}
        match [unquote(part) for part in url.path.strip("/").split("/")]:
            case ["schemas", "guids", guid]:
                return self.schema(next((n for n in self._contents.schemas if self.guid(n) == guid), 0), query)
            case ["subjects", subject, "versions", _] if subject in self._deleted and query.get("deleted") != "true":
                return not_found(40401)
        return super().answer(path)

    def schema(self, number: int, query: Mapping[str, str]) -> Reply:
        status, found = super().schema(number, query)
        return status, {**found, "guid": self.guid(number)} if number in self._contents.schemas else found


@contextmanager
def running_registry() -> Iterator[FaultyRegistry]:
    """A registry that ends with the block."""
    with closing(FaultyRegistry()) as registry:
        yield registry
