"""AWS Glue as moto plays it: tables in the memory of a process, which forgets them when it ends."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest

from kgs_core.system.subprocesses import ChildProcess
from kgs_core.system.tcp_ports import HOST, PortReservation
from tests.waiting import wait_until

REGION = "us-east-1"
_MOTO = Path(sys.executable).parents[1] / "moto"


class Moto:
    """A running server. `client`: boto3's, to look into it and to meddle."""

    def __init__(self, folder: Path) -> None:
        self._ports = PortReservation()
        port = self._ports.reserve()
        self.url = f"http://{HOST}:{port}"
        command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
        self._child = ChildProcess("moto", command, folder / "moto.log", {**os.environ, "PYTHONPATH": str(_MOTO)})
        self.client = boto3.client("glue", endpoint_url=self.url, region_name=REGION)

    def start(self) -> None:
        """Returns when it answers, empty."""
        self._child.start()
        wait_until(lambda: "Running on" in self._child.log_tail(20), 30, f"moto answers: {self._child.log_tail(5)}")

    def kill(self) -> None:
        self._child.kill()
        self._child.log_file.unlink()

    def close(self) -> None:
        self._child.kill()
        self.client.close()
        self._ports.release()


@contextmanager
def running_moto(folder: Path) -> Iterator[Moto]:
    """Running while the block does; the keys that AWS's clients want are in the environment."""
    if not _MOTO.exists():
        pytest.skip(f"no {_MOTO}: `make neighbours` installs it")
    moto = Moto(folder)
    try:
        moto.start()
        yield moto
    finally:
        moto.close()
