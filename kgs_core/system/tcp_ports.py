"""TCP ports of this machine that no two processes of the project pick at once."""

import os
import secrets
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from kgs_core.errors import PermanentError
from kgs_core.system.locks import process_lock

HOST = "127.0.0.1"
# Below 32768, where the kernel takes the ports of outgoing connections: one of those could sit on ours at a restart.
_FIRST, _LAST = 20000, 32000


class PortReservation:
    """Ports held for this process, by a lock file each, until `release` or the end of the process.

    Raises `PermanentError` if a port, or every port, is taken.
    """

    def __init__(self) -> None:
        self._locks: dict[int, FileLock] = {}

    def reserve(self, preferred: int | None = None) -> int:
        """A free port, `preferred` if that is one.

        Raises:
            PermanentError: no port is free.
        """
        for port in _to_try(preferred):
            if self._lock(port):
                return port
        raise PermanentError(f"{HOST}: no free port from {_FIRST} to {_LAST}: end what holds them")

    def reserve_exactly(self, port: int) -> int:
        """`port`.

        Raises:
            PermanentError: it is taken.
        """
        if not self._lock(port):
            raise PermanentError(f"{HOST}:{port}: in use: end what listens there or choose another port")
        return port

    def release(self) -> None:
        """Gives every port back."""
        for lock in self._locks.values():
            lock.release()
        self._locks.clear()

    def _lock(self, port: int) -> bool:
        if port in self._locks:
            return False
        lock = process_lock(_locks_folder() / str(port), waits=False)
        try:
            lock.acquire()
            _bind(port)
        except OSError:
            lock.release()
            return False
        self._locks[port] = lock
        return True


def _locks_folder() -> Path:
    """Per user: nobody can open another user's lock file. Binding a port sees other users' ports.

    Raises:
        PermanentError: somebody else has made it. The folder around it is everybody's: files that they have put into it
            could be links to files of ours, which opening would empty.
    """
    folder = Path(tempfile.gettempdir()) / f"kgs-ports-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermanentError(
            f"{folder}: is a link, another user's, or writable by others: remove it, or name another TMPDIR"
        )
    return folder


def _bind(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java does: closed connections do not count
        probe.bind((HOST, port))


def _to_try(preferred: int | None) -> Iterator[int]:
    if preferred is not None:
        yield preferred
    count = _LAST - _FIRST
    start = secrets.randbelow(count)
    yield from (_FIRST + (start + step) % count for step in range(count))
