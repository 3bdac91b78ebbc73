"""Stands before an S3 server and breaks the rules on demand.

A process of its own (`python -m tests.system.s3_meddler PORT SERVER_PORT`): some calls of deltalake hold Python's lock
until they are answered, so an answer from the same process would never come.
"""

import http.client
import io
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO, ClassVar

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from bench.object_servers import ACCESS, REGION, SECRET
from kgs_core.system.tcp_ports import HOST, PortReservation
from tests.waiting import wait_until

DROP_CONDITIONS = "drop_conditions"
"""Pass on no If-None-Match and no If-Match, as a store does that does not know them."""
LOSE_REPLIES = "lose_replies"
"""Carry out the next n writes of log entries, but do not answer."""
LOSE_REQUESTS = "lose_requests"
"""Neither carry them out nor answer."""
CONFLICT = "conflict"
"""Answer 409 and carry nothing out, as S3 does while another conditional write is under way."""
TWICE = "twice"
"""Carry them out twice, as after a connection that broke on the way, and give the second answer."""
LATE = "late"
"""Carry them out, and answer `LATE_S` later."""
LATE_S = 3.0
UNAVAILABLE = "unavailable"
"""Answer 503 to the next n requests of any kind."""

_CONTROL = "/-/"
_SIGNED = ("range", "content-type", "x-amz-content-sha256", "x-amz-copy-source")
_CONDITIONS = ("if-none-match", "if-match")
_HOP = ("content-length", "transfer-encoding", "connection")
ROOT = Path(__file__).parents[2]


class Meddler:
    """The test's end of it."""

    def __init__(self, port: int) -> None:
        self.port = port

    def order(self, what: str, times: int) -> None:
        """Do it the next `times` times."""
        self._ask(f"{_CONTROL}{what}/{times}")

    def left(self, what: str) -> int:
        """How many times of an order are still to come."""
        return int(self._ask(f"{_CONTROL}{what}"))

    def answers(self) -> bool:
        try:
            return self.left(DROP_CONDITIONS) == 0
        except OSError:
            return False

    def _ask(self, path: str) -> bytes:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        finally:
            connection.close()


@contextmanager
def meddling(server_port: int) -> Iterator[Meddler]:
    """A meddler before the server on this port; what is asked of the meddler's port is passed on."""
    ports = PortReservation()
    port = ports.reserve()
    command = [sys.executable, "-m", "tests.system.s3_meddler", str(port), str(server_port)]
    process = subprocess.Popen(command, cwd=ROOT, env=dict(os.environ))
    try:
        meddler = Meddler(port)
        wait_until(meddler.answers, 20, "the meddler answers")
        yield meddler
    finally:
        process.kill()
        process.wait(10)
        ports.release()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_port = 0
    orders: ClassVar[Counter[str]] = Counter()

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if "chunked" in self.headers.get("transfer-encoding", ""):
            body = b"".join(_chunks(self.rfile))
        if "aws-chunked" in self.headers.get("content-encoding", ""):
            body = b"".join(_chunks(io.BytesIO(body)))
        if self.path.startswith(_CONTROL):
            self._obey(self.path.removeprefix(_CONTROL))
            return
        if self._due(UNAVAILABLE):
            self._refuse(503, "SlowDown")
        elif self.command == "PUT" and "_delta_log/" in self.path and self.path.endswith(".json"):
            self._pass_on_entry(body)
        else:
            self._reply(*self._ask(body))

    def _pass_on_entry(self, body: bytes) -> None:
        if self._due(LOSE_REQUESTS):
            self.close_connection = True
            return
        if self._due(CONFLICT):
            self._refuse(409, "ConditionalRequestConflict")
            return
        status, headers, answer = self._ask(body)
        if self._due(TWICE):
            status, headers, answer = self._ask(body)
        if self._due(LATE):
            time.sleep(LATE_S)
        if self._due(LOSE_REPLIES):
            self.close_connection = True
            return
        self._reply(status, headers, answer)

    def _reply(self, status: int, headers: list[tuple[str, str]], answer: bytes) -> None:
        length = str(len(answer)) if self.command != "HEAD" else dict(headers).get("Content-Length", "0")
        self._answer(status, [(k, v) for k, v in headers if k.lower() not in _HOP], length, answer)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass_on  # noqa: N815 - http.server's names

    def _obey(self, order: str) -> None:
        what, _, times = order.partition("/")
        if times:
            self.orders[what] = int(times)
        text = str(self.orders[what]).encode()
        self._answer(200, [], str(len(text)), text)

    def _due(self, what: str) -> bool:
        due = self.orders[what] > 0
        self.orders[what] -= due
        return due

    def _refuse(self, status: int, code: str) -> None:
        body = b"" if self.command == "HEAD" else f"<Error><Code>{code}</Code></Error>".encode()
        self._answer(status, [("Content-Type", "application/xml")], str(len(body)), body)

    def _answer(self, status: int, headers: list[tuple[str, str]], length: str, body: bytes) -> None:
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(body)

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        kept = _SIGNED if self.orders[DROP_CONDITIONS] else (*_SIGNED, *_CONDITIONS)
        headers = {key: value for key, value in self.headers.items() if key.lower() in kept}
        request = AWSRequest(self.command, f"http://{HOST}:{self.server_port}{self.path}", headers=headers, data=body)
        S3SigV4Auth(Credentials(ACCESS, SECRET), "s3", REGION).add_auth(request)  # what is changed is signed anew
        connection = http.client.HTTPConnection(HOST, self.server_port, timeout=30)
        try:
            connection.request(self.command, self.path, body=body, headers=dict(request.headers))
            reply = connection.getresponse()
            return reply.status, reply.getheaders(), reply.read()
        finally:
            connection.close()

    def log_message(self, *_: object) -> None:
        """Quiet."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # a client that reads a log opens more connections at once than the five that are usual

    def handle_error(self, *_: object) -> None:
        """Quiet: clients that do not wait for their answer belong to it."""


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """The data of a body whose pieces begin with their length: in HTTP's coding, or in S3's with its checksums."""
    while length := int(stream.readline().partition(b";")[0], 16):
        yield stream.read(length)
        stream.readline()
    while stream.readline().strip():
        pass


if __name__ == "__main__":
    _Handler.server_port = int(sys.argv[2])
    _Server((HOST, int(sys.argv[1])), _Handler).serve_forever()
