"""What the lake lies on, and what can happen to it: a small disk, or an object store behind a meddler."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.object_servers import BUCKET, S3Server
from kgs_core.errors import PermanentError
from tests.system.s3_meddler import Meddler, meddling

ROOM_BYTES, COPIES = 512_000_000, 4
"""Of a disk: for a short run, and for each byte that a long one writes, which upkeep copies into larger files."""


@dataclass
class ChaosLake:
    """Where the lake is.

    Attributes:
        root: as kgs.yaml has it.
        tables: the same as a folder of this machine, for a reader that shares nothing with the product.
        environ: what the store's keys are given by.
    """

    root: str
    tables: Path
    storage_options: Mapping[str, str] = field(default_factory=dict)


@dataclass
class SmallDisk(ChaosLake):
    """A disk of its own, so that it can be full or read-only; needs the right to mount.

    Attributes:
        size: in bytes.
    """

    size: int = ROOM_BYTES

    @property
    def _disk(self) -> Path:
        return self.tables.parent

    def fill(self) -> Path:
        """Nothing is left; gives the file to remove."""
        filler = self._disk / "filler"
        with suppress(OSError), filler.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(100_000))
        return filler

    def remount(self, how: str) -> None:
        """`ro` or `rw`.

        Raises:
            LookupError: a file is open for writing at this moment.
        """
        if subprocess.run(["mount", "-o", f"remount,{how},size={self.size}", self._disk], check=False).returncode:
            raise LookupError("a file is open")


@dataclass
class MeddledStore(ChaosLake):
    """An S3 server that can be killed, behind a meddler that answers what it likes."""

    server: S3Server = field(kw_only=True)
    meddler: Meddler = field(kw_only=True)


@contextmanager
def small_disk(folder: Path, written: float) -> Iterator[SmallDisk]:
    """Mounted while the block runs; it has room for so many bytes of records."""
    disk = SmallDisk(str(folder / "lake"), folder / "lake", size=ROOM_BYTES + COPIES * round(written))
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk.size}", "tmpfs", folder], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def meddled_store(folder: Path) -> Iterator[MeddledStore]:
    """Running while the block does."""
    folder.mkdir()
    try:
        server = S3Server(folder)
    except PermanentError as e:
        pytest.skip(str(e))
    with server, ExitStack() as held:
        meddler = held.enter_context(meddling(server.port))
        storage = server.storage("chaos", meddler.port)
        tables = server.data / BUCKET / "chaos"
        yield MeddledStore(storage.root, tables, dict(storage.options), server=server, meddler=meddler)
