"""PostgreSQL on this machine: an empty server, which ends with the block."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg2
import pytest

from kgs_core.system.subprocesses import ChildProcess
from kgs_core.system.tcp_ports import HOST, PortReservation
from tests.waiting import wait_until

OWNER = "postgres"
_NOT_ROOT = ("setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups", "--")


def _programs() -> Path:
    """The newest version's; Debian puts no server's program where commands are looked for."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("no PostgreSQL in /usr/lib/postgresql: `make neighbours` says how to install it")
    return found[-1].parent


@contextmanager
def running_postgres() -> Iterator[str]:
    """Address of its one database, without a password."""
    programs = _programs()
    as_owner = _NOT_ROOT if os.getuid() == 0 else ()  # it refuses to run as root
    # Beside pytest's own folders, which are closed to the owner
    folder = Path(tempfile.mkdtemp(prefix="kgs-postgres-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    ports = PortReservation()
    port, data = ports.reserve(), folder / "data"
    options = [f"listen_addresses={HOST}", f"port={port}", f"unix_socket_directories={folder}", "fsync=off"]
    command = [str(programs / "postgres"), "-D", str(data), *(word for each in options for word in ("-c", each))]
    server = ChildProcess("postgres", [*as_owner, *command], folder / "postgres.log", folder=folder)
    try:
        if as_owner:
            shutil.chown(folder, OWNER, OWNER)
        make = [str(programs / "initdb"), "-D", str(data), "-U", OWNER, "--auth=trust", "--no-sync"]
        subprocess.run([*as_owner, *make], check=True, capture_output=True, timeout=120, cwd=folder)
        server.start()
        url = f"postgresql://{OWNER}@{HOST}:{port}/postgres"
        wait_until(lambda: _answers(url), 30, f"PostgreSQL answers: {server.log_tail(5)}")
        yield url
    finally:
        server.end(20)
        ports.release()
        shutil.rmtree(folder)


def _answers(url: str) -> bool:
    try:
        psycopg2.connect(url).close()
    except psycopg2.OperationalError:
        return False
    return True
