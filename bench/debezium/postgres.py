"""PostgreSQL on this machine: a server that can be killed and started again."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg2

from kgs_core.errors import PermanentError
from kgs_core.system.subprocesses import ChildProcess
from kgs_core.system.tcp_ports import HOST, PortReservation

OWNER = "postgres"
_NOT_ROOT = ("setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups", "--")
_START_TIMEOUT_S = 90.0
_POLL_S = 0.1


class Postgres:
    """An empty server; a context manager that starts it, ends it and removes its data.

    Attributes:
        url: of its one database; no password.
        port: the same for the life of this object.
    """

    def __init__(self, **settings: str) -> None:
        """`settings`: added to the server's. Raises `PermanentError` if this machine has no PostgreSQL."""
        programs = find_postgres()
        as_owner = _NOT_ROOT if os.getuid() == 0 else ()  # it refuses to run as root
        # Beside pytest's own folders, which are closed to the owner
        self._folder = Path(tempfile.mkdtemp(prefix="kgs-postgres-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
        self._ports = PortReservation()
        self.port, data = self._ports.reserve(), str(self._folder / "data")
        self.url = f"postgresql://{OWNER}@{HOST}:{self.port}/postgres"
        every = {"listen_addresses": HOST, "port": self.port, "unix_socket_directories": self._folder, "fsync": "off"}
        options = [word for name, value in {**every, **settings}.items() for word in ("-c", f"{name}={value}")]
        command = [*as_owner, str(programs / "postgres"), "-D", data, *options]
        self._child = ChildProcess("postgres", command, self._folder / "postgres.log", folder=self._folder)
        self._make = [*as_owner, str(programs / "initdb"), "-D", data, "-U", OWNER, "--auth=trust", "--no-sync"]

    def start(self) -> None:
        """Returns when it answers. Raises `PermanentError` if it does not."""
        self._child.start()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            if self._child.pid is None or time.monotonic() > deadline:
                raise PermanentError(f"PostgreSQL did not start: {self._child.log_tail(5)}")
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """SIGKILL to all its processes; what it has committed is there at the next start."""
        self._child.kill()

    def __enter__(self) -> Self:
        try:
            if os.getuid() == 0:
                shutil.chown(self._folder, OWNER, OWNER)
            subprocess.run(self._make, check=True, capture_output=True, timeout=120, cwd=self._folder)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        at: TracebackType | None = None,
    ) -> None:
        self._child.end(20)
        self._ports.release()
        shutil.rmtree(self._folder)

    def _answers(self) -> bool:
        try:
            psycopg2.connect(self.url).close()
        except psycopg2.OperationalError:
            return False
        return True


def find_postgres() -> Path:
    """Programs of the newest version; Debian puts no server's where commands are looked for.

    Raises:
        PermanentError: this machine has none.
    """
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        raise PermanentError("no PostgreSQL in /usr/lib/postgresql: `make neighbours` installs it")
    return found[-1].parent
