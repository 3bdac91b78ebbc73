"""Stores of objects on this machine: versitygw for S3, Azurite for Azure, fake-gcs-server for Google Cloud Storage."""

import json
import os
import shutil
import socket
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from pyarrow.fs import AzureFileSystem

from kgs_core.errors import PermanentError
from kgs_core.lake.files.storage import Storage
from kgs_core.system.subprocesses import ChildProcess
from kgs_core.system.tcp_ports import HOST, PortReservation

BUCKET = "lake"
ACCESS, SECRET, REGION = "tester", "not-a-secret", "us-east-1"
_AZURE_ACCOUNT = "devstoreaccount1"
_AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # public: Azurite's
)
_ROOT = Path(__file__).parents[1]
_START_TIMEOUT_S = 40.0
_POLL_S = 0.05
_MAKE = {"versitygw": "s3-server", "azurite-blob": "neighbours", "fake-gcs-server": "neighbours"}


def find_program(name: str) -> str | None:
    """A server's program: what its variable (VERSITYGW) names, beside this Python, or on PATH; None: there is none."""
    named = os.environ.get(name.upper().replace("-", "_"))
    beside = Path(sys.executable).with_name(name)
    return named or (str(beside) if beside.exists() else shutil.which(name))


class ObjectServer(ABC):
    """A server on a folder, with one bucket. It can be killed, and started again on the same port."""

    kind: ClassVar[str]
    program: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        found = find_program(self.program)
        if found is None:
            raise PermanentError(
                f"no {self.program} (the test server of {self.kind}): `make {_MAKE[self.program]}` installs it, "
                f"or set {self.program.upper().replace('-', '_')}"
            )
        self._ports = PortReservation()
        self.port = self._ports.reserve()
        self.data = folder / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        commands = self._commands(found)
        self._children = [
            ChildProcess(f"{self.kind}-{n}", command, folder / f"{n}.log", folder=_ROOT)
            for n, command in enumerate(commands)
        ]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @abstractmethod
    def _commands(self, program: str) -> list[list[str]]:
        """What is run; the last one listens on `port`."""

    @abstractmethod
    def storage(self, prefix: str, port: int | None = None) -> Storage:
        """A lake in the bucket, reached through this port, by default the server's own."""

    def _make_bucket(self) -> None:
        (self.data / BUCKET).mkdir(exist_ok=True)  # a bucket is a folder

    def start(self) -> None:
        """Return when it answers.

        Raises:
            PermanentError: it does not.
        """
        for child in self._children:
            child.start()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._listens():
            if any(child.pid is None for child in self._children) or time.monotonic() > deadline:
                self.kill()
                raise PermanentError(f"{self.program} does not start: {self._children[0].log_tail(5)}")
            time.sleep(_POLL_S)
        self._make_bucket()

    def kill(self) -> None:
        """At once, in the middle of whatever it does."""
        for child in self._children:
            child.kill()

    def close(self) -> None:
        """End it for good."""
        self.kill()
        self._ports.release()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0


class S3Server(ObjectServer):
    """versitygw."""

    kind, program = "s3", "versitygw"

    def _commands(self, program: str) -> list[list[str]]:
        keys = ["--access", ACCESS, "--secret", SECRET, "--region", REGION]
        self._make_bucket()
        return [[program, *keys, "--port", f"{HOST}:{self.port}", "--quiet", "posix", str(self.data)]]

    def storage(self, prefix: str, port: int | None = None) -> Storage:
        """See `ObjectServer`."""
        options = {
            "AWS_ACCESS_KEY_ID": ACCESS,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": f"http://{HOST}:{port or self.port}",
            "AWS_ALLOW_HTTP": "true",
        }
        return Storage(f"s3://{BUCKET}/{prefix}", options)


class AzureServer(ObjectServer):
    """Azurite."""

    kind, program = "azure", "azurite-blob"

    def _commands(self, program: str) -> list[list[str]]:
        # the clients here speak a newer version of the protocol than it knows
        options = ["--silent", "--skipApiVersionCheck", "--blobHost", HOST, "--disableTelemetry"]
        return [[program, *options, "--blobPort", str(self.port), "--location", str(self.data)]]

    def _make_bucket(self) -> None:
        AzureFileSystem(
            _AZURE_ACCOUNT,
            account_key=_AZURE_KEY,
            blob_storage_authority=f"{HOST}:{self.port}",
            blob_storage_scheme="http",
        ).create_dir(BUCKET)

    def storage(self, prefix: str, port: int | None = None) -> Storage:
        """See `ObjectServer`."""
        options = {
            "AZURE_STORAGE_ACCOUNT_NAME": _AZURE_ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _AZURE_KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://{HOST}:{port or self.port}/{_AZURE_ACCOUNT}",
            "ALLOW_HTTP": "true",
        }
        return Storage(f"az://{BUCKET}/{prefix}", options)


class GcsServer(ObjectServer):
    """fake-gcs-server, which knows the JSON protocol, behind a translator of the XML one that Rust's client speaks."""

    kind, program = "gcs", "fake-gcs-server"
    translator_options: ClassVar[list[str]] = []

    def _commands(self, program: str) -> list[list[str]]:
        self._make_bucket()
        inner = self._ports.reserve()
        server = [program, "-scheme", "http", "-host", HOST, "-port", str(inner), "-filesystem-root", str(self.data)]
        translator = [sys.executable, "-m", "bench.gcs_xml", str(self.port), str(inner), *self.translator_options]
        return [[*server, "-log-level", "error"], translator]

    def storage(self, prefix: str, port: int | None = None) -> Storage:
        """See `ObjectServer`."""
        account = {"gcs_base_url": f"http://{HOST}:{port or self.port}", "disable_oauth": True, "client_email": "",
                   "private_key": "", "private_key_id": ""}  # fmt: skip
        options = {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account), "ALLOW_HTTP": "true"}
        return Storage(f"gs://{BUCKET}/{prefix}", options)


OBJECT_SERVERS: dict[str, type[ObjectServer]] = {each.kind: each for each in (S3Server, AzureServer, GcsServer)}
