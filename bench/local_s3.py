"""S3 server on this machine, for measurements: versitygw on a folder."""

import os
import shutil
import socket
import sys
import time
from pathlib import Path
from types import TracebackType

from kgs_core.errors import PermanentError
from kgs_core.system.subprocesses import ChildProcess
from kgs_core.system.tcp_ports import HOST, PortReservation

BUCKET = "lake"
_ACCESS, _SECRET, _REGION = "bench", "not-a-secret", "us-east-1"
_START_TIMEOUT_S = 20.0
_POLL_S = 0.05


def find_s3_program() -> Path:
    """The server's program: VERSITYGW, beside this Python, or on PATH.

    Raises:
        PermanentError: there is none.
    """
    beside = Path(sys.executable).with_name("versitygw")
    found = os.environ.get("VERSITYGW") or (str(beside) if beside.exists() else shutil.which("versitygw"))
    if found is None:
        raise PermanentError(
            "bench lake: no S3 server: `make s3-server` builds versitygw, VERSITYGW names one, --store disk needs none"
        )
    return Path(found)


class LocalS3:
    """versitygw with one bucket; a context manager that ends it."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._ports = PortReservation()
        self.port = self._ports.reserve()
        data = folder / "data"
        (data / BUCKET).mkdir(parents=True)  # a bucket is a folder
        keys = ["--access", _ACCESS, "--secret", _SECRET, "--region", _REGION]
        command = [str(program), *keys, "--port", f"{HOST}:{self.port}", "--quiet", "posix", str(data)]
        self._child = ChildProcess("s3-server", command, folder / "s3-server.log")

    def __enter__(self) -> "LocalS3":
        self._child.start()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._listens():
            if self._child.pid is None or time.monotonic() > deadline:
                self._child.kill()
                raise PermanentError(f"bench lake: the S3 server does not start: {self._child.log_tail(5)}")
            time.sleep(_POLL_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._child.kill()
        self._ports.release()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0


def s3_options(port: int) -> dict[str, str]:
    """`lake.storage_options` of a lake in the bucket, reached through this port."""
    return {
        "AWS_ACCESS_KEY_ID": _ACCESS,
        "AWS_SECRET_ACCESS_KEY": _SECRET,
        "AWS_REGION": _REGION,
        "AWS_ENDPOINT_URL": f"http://{HOST}:{port}",
        "AWS_ALLOW_HTTP": "true",
    }
