"""The proxy that makes a store slow: what is passed on, what is counted."""

import http.client
import time

import pytest

from bench.delay_proxy import DelayProxy
from kgs_core.system.tcp_ports import HOST
from tests.loopback_http import LoopbackServer, QuietHandler

DELAY_S = 0.05


class _Echo(QuietHandler):
    """Answers with what was sent."""

    protocol_version = "HTTP/1.1"

    def _answer(self):
        if "chunked" in self.headers.get("transfer-encoding", ""):
            self.reply(200, b"".join(iter(self._chunk, b"")))
        else:
            self.reply(200, self.body())

    def _chunk(self):
        found = self.rfile.read(int(self.rfile.readline(), 16))
        self.rfile.readline()
        return found

    do_GET = do_HEAD = do_PUT = do_POST = _answer  # noqa: N815 - http.server's names


@pytest.fixture
def proxy():
    with LoopbackServer(_Echo) as server, DelayProxy(server.port, DELAY_S) as proxy:
        yield proxy


def test_requests_pass_unchanged_and_late_over_one_connection(proxy):
    connection = http.client.HTTPConnection(HOST, proxy.port, timeout=20)
    body = bytes(range(256)) * 2000
    began = time.monotonic()
    for method, sent in (("PUT", body), ("GET", None), ("HEAD", None), ("POST", iter([body[:7], body[7:]]))):
        connection.request(method, "/lake/a?b=c", sent, encode_chunked=method == "POST")
        assert connection.getresponse().read() == (body if sent else b"")
    assert time.monotonic() - began >= 4 * DELAY_S
    connection.close()
    assert proxy.by_method() == {"PUT": 1, "GET": 1, "HEAD": 1, "POST": 1}
    assert {request.target for request in proxy.requests} == {"/lake/a?b=c"}


def test_requests_of_several_connections_are_late_at_the_same_time():
    delay_s, count = 0.5, 20
    with LoopbackServer(_Echo) as server, DelayProxy(server.port, delay_s) as proxy:
        began = time.monotonic()
        connections = [http.client.HTTPConnection(HOST, proxy.port, timeout=20) for _ in range(count)]
        for connection in connections:
            connection.request("GET", "/")
        for connection in connections:
            assert connection.getresponse().status == 200
            connection.close()
        assert delay_s <= time.monotonic() - began < count * delay_s / 2
        assert len(proxy.requests) == count


def test_server_that_is_not_there_ends_the_connection(proxy):
    with DelayProxy(1, 0.0) as nowhere:
        connection = http.client.HTTPConnection(HOST, nowhere.port, timeout=20)
        connection.request("GET", "/")
        with pytest.raises((http.client.HTTPException, OSError)):
            connection.getresponse()
        connection.close()
