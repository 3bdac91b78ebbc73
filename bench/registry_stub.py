"""Schema registry in memory, on loopback, with the few routes that clients of kgs use."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from kgs_core.ports.registry import SchemaKind
from kgs_core.system.tcp_ports import HOST, PortReservation

Reply = tuple[int, Mapping[str, Any]]
_NOT_FOUND = {
    40401: "Subject not found.",
    40402: "Version not found.",
    40403: "Schema not found",
}


@dataclass(slots=True)
class _Contents:
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)


class StubRegistry:
    """A registry that runs in threads of this process."""

    def __init__(self) -> None:
        """Answers from now on, at a free port of loopback."""
        self._ports = PortReservation()
        self._port = self._ports.reserve()
        self.url = f"http://{HOST}:{self._port}"
        self._contents = _Contents()
        self._lock = threading.Lock()
        self._server = self._serving()

    def _serving(self) -> ThreadingHTTPServer:
        server = _Server((HOST, self._port), _handler(self))
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return server

    def close(self) -> None:
        """End it, and give its port back."""
        self._server.shutdown()
        self._server.server_close()
        self._ports.release()

    def register(
        self,
        subject: str,
        text: str,
        kind: SchemaKind = SchemaKind.AVRO,
        references: Sequence[tuple[str, str, int]] = (),
    ) -> int:
        """Id of a schema, which becomes the newest of a subject; one that is there already keeps its id.

        `text` is a FileDescriptorProto in base64 for Protobuf; `references` are (name, subject, version).
        """
        entry = {
            "schema": text,
            "schemaType": str(kind),
            "references": [dict(zip(("name", "subject", "version"), each, strict=True)) for each in references],
        }
        with self._lock:
            found = next((n for n, known in self._contents.schemas.items() if known == entry), None)
            number = len(self._contents.schemas) + 1 if found is None else found
            self._contents.schemas[number] = entry
            versions = self._contents.subjects.setdefault(subject, [])
            if number in versions:
                versions.remove(number)
            versions.append(number)
            return number

    def answer(self, path: str) -> Reply | None:
        """Status and JSON that a question gets; None: no answer."""
        url = urlsplit(path)
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        query = {name: found[-1] for name, found in parse_qs(url.query).items()}
        match parts:
            case ["schemas", "ids", number] if number.isascii() and number.isdecimal():
                return self.schema(int(number), query)
            case ["subjects", subject, "versions", version]:
                return self._version(subject, version, query)
            case _:
                return HTTPStatus.NOT_FOUND, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def schema(self, number: int, query: Mapping[str, str]) -> Reply:
        """Answer about the schema of this id."""
        entry = self._contents.schemas.get(number)
        if entry is None:
            return not_found(40403)
        if entry["schemaType"] == SchemaKind.PROTOBUF and query.get("format") != "serialized":
            entry = {**entry, "schema": "// this registry compiles nothing: ask with format=serialized"}
        out = {name: what for name, what in entry.items() if what and (name, what) != ("schemaType", SchemaKind.AVRO)}
        return HTTPStatus.OK, out

    def _version(self, subject: str, version: str, query: Mapping[str, str]) -> Reply:
        versions = self._contents.subjects.get(subject)
        if versions is None:
            return not_found(40401)
        n = len(versions) if version == "latest" else int(version)
        if not 1 <= n <= len(versions):
            return not_found(40402)
        status, found = self.schema(versions[n - 1], query)
        return status, {**found, "subject": subject, "version": n, "id": versions[n - 1]}


@contextmanager
def running_registry() -> Iterator[StubRegistry]:
    """A registry that ends with the block."""
    with closing(StubRegistry()) as registry:
        yield registry


def not_found(code: int) -> Reply:
    """Answer of a registry that has no such thing."""
    return HTTPStatus.NOT_FOUND, {"error_code": code, "message": _NOT_FOUND[code]}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False


def _handler(registry: StubRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_args: object) -> None:
            """Say nothing: who asks says what went wrong."""

        def do_GET(self) -> None:
            reply = registry.answer(self.path)
            if reply is None:
                return
            status, found = reply
            out = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

    return Handler
