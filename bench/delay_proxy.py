"""HTTP proxy that answers every request late, and keeps a list of them: a store as far away as one wants.

It stands between a client and one server on this machine. Every request is read, held back, and passed on as it is (so
signatures stay right); answers are passed back byte by byte. For clients that send a request after the last one's
answer, as those of object stores do.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import TracebackType

from kgs_core.system.tcp_ports import HOST, PortReservation

_CHUNK = 65_536
_LONGEST_HEAD = 1 << 20
_START_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Request that was passed on.

    Attributes:
        target: path and query.
        arrived_s: on the proxy's own clock, which has no meaning but order and difference.
    """

    method: str
    target: str
    arrived_s: float


class DelayProxy:
    """Proxy on a port of its own, in a thread of its own; a context manager that ends it."""

    def __init__(self, server_port: int, delay_s: float) -> None:
        self._server_port = server_port
        self._delay_s = delay_s
        self._ports = PortReservation()
        self.port = self._ports.reserve()
        self._requests: list[HttpRequest] = []
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="delay-proxy", daemon=True)

    def __enter__(self) -> "DelayProxy":
        self._thread.start()
        if not self._ready.wait(_START_TIMEOUT_S):
            raise RuntimeError("the proxy does not listen")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._ports.release()

    @property
    def requests(self) -> list[HttpRequest]:
        """All so far, in the order of their arrival."""
        return list(self._requests)

    def by_method(self) -> Counter[str]:
        """Method -> number of requests so far."""
        return Counter(request.method for request in self._requests)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._pass_all, HOST, self.port, limit=_LONGEST_HEAD, backlog=1024)
        self._ready.set()
        await self._stop.wait()
        server.close()  # does not wait for connections: they are cancelled below
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _pass_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection, with one of its own to the server."""
        async with _closing(writer):
            from_server, to_server = await asyncio.open_connection(HOST, self._server_port)
            async with _closing(to_server):
                answers = asyncio.create_task(_pump(from_server, writer))
                try:
                    while True:
                        await self._pass_request(reader, to_server)
                finally:
                    answers.cancel()

    async def _pass_request(self, reader: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, *rest = head.decode("latin-1").split("\r\n")
        method, target, _ = line.split(" ", 2)
        fields = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in rest)}
        self._requests.append(HttpRequest(method, target, self._loop.time()))
        await asyncio.sleep(self._delay_s)
        to_server.write(head)
        if "chunked" in fields.get("transfer-encoding", "").lower():
            await _pass_chunks(reader, to_server)
        else:
            await _pass_bytes(reader, to_server, int(fields.get("content-length", "0")))


@asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Closes it, whatever ends the use of it: connections of both sides end in all ways."""
    try:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            yield
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _pass_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: int) -> None:
    while count:
        data = await reader.read(min(count, _CHUNK))
        if not data:
            raise asyncio.IncompleteReadError(b"", count)
        count -= len(data)
        writer.write(data)
        await writer.drain()


async def _pass_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A body in HTTP's chunked coding, to its last chunk and the trailers behind it."""
    while True:
        line = await reader.readuntil(b"\r\n")
        writer.write(line)
        length = int(line.partition(b";")[0], 16)
        if not length:
            break
        await _pass_bytes(reader, writer, length + 2)
    while line != b"\r\n":
        line = await reader.readuntil(b"\r\n")
        writer.write(line)
    await writer.drain()
