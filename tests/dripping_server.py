"""A server on loopback whose answers begin at once and do not end: each piece of them comes in time."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HEAD = b"HTTP/1.1 200 OK\r\n"
ENDLESS = {"headers": (HEAD, b"X: x\r\n"), "body": (HEAD + b"Content-Length: 1000000\r\n\r\n", b" ")}
"""What each answer begins with, and what then comes again and again."""
_PIECES = 400  # those who wait for the end all the same are told that there is none, after some ten seconds


@contextmanager
def dripping_server(head: bytes, piece: bytes) -> Iterator[str]:
    """Its URL, where it answers by one of `ENDLESS`; it has ended after the block."""
    ended, threads = threading.Event(), []

    def drip(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65_536)
            connection.sendall(head)
            for _ in range(_PIECES):
                if ended.wait(0.02):
                    return
                connection.sendall(piece)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threads.append(threading.Thread(target=drip, args=[listening.accept()[0]], daemon=True))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            ended.set()
            listening.shutdown(socket.SHUT_RDWR)
            for thread in (accepting, *threads):
                thread.join()
