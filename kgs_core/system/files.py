"""Files: texts that people name, writes that come whole or not at all, logs and states that only their owner reads."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Protocol

from kgs_core.errors import ConfigError


class NamedFile(Protocol):
    """As much of `Path` as a file needs that people name; it need not lie on a disk."""

    def exists(self) -> bool: ...  # noqa: D102
    def read_text(self, encoding: str) -> str: ...  # noqa: D102
    def write_bytes(self, data: bytes, /) -> object: ...  # noqa: D102


@contextmanager
def answering(place: object, cure: str = "name another file", otherwise: str = "does not answer") -> Iterator[None]:
    """A block that asks a disk or a store; what that does not do is a `ConfigError`.

    Args:
        cure: what to do then.
        otherwise: what is wrong, where the system has no word for it.
    """
    try:
        yield
    except OSError as e:
        raise ConfigError([f"{place}: {(e.strerror or otherwise).lower()}: {cure}"]) from None


def read_text(path: NamedFile) -> str:
    """The text of a file that people name. Raises `ConfigError` if it cannot be read."""
    try:
        with answering(path, otherwise="unreadable"):
            return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
        raise ConfigError([f"{path}: byte {e.start} is not UTF-8: save it as UTF-8 text"]) from None
    except ValueError:  # a NUL in the name
        raise ConfigError([f"{str(path)!r}: not the name of a file: name another"]) from None


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; `path` is replaced by it at the end of the block, unless that fails.

    Nobody who reads `path` sees half of it. What a power cut leaves of it is not known: see `write_whole`.
    """
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def flush(*paths: str | Path) -> None:
    """Put the contents of files, and the names in folders, on the disk, in this order."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_whole(path: NamedFile, content: bytes) -> None:
    """Write a file that people name at once, as `replacement`; it is whole after a power cut, too.

    Raises:
        ConfigError: it cannot be written there.
    """
    with answering(path, otherwise="unwritable"):
        if not isinstance(path, Path):
            path.write_bytes(content)
            return
        with replacement(path) as partial:
            partial.write_bytes(content)
            flush(partial)


def check_writable(option: str, path: NamedFile) -> None:
    """Raise a `ConfigError` for a place where no file can come to be, before anything is computed."""
    if not isinstance(path, Path):
        with answering(f"{option}: {path}"):
            path.exists()
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfigError([f"{option}: {path}: its folder does not exist: create it first"])
    if path.is_dir():
        raise ConfigError([f"{option}: {path}: is a folder: name a file in it"])
    if not os.access(folder, os.W_OK):
        raise ConfigError([f"{option}: {path}: its folder cannot be written to: name another"])


def append_privately(path: Path) -> FileIO:
    """A log to write to at its end, which only its owner reads: it may hold what transforms say of the data.

    One that is there already keeps the rights that somebody gave it.
    """
    return FileIO(os.fspath(path), "a", opener=_private)


def write_privately(path: Path, text: str) -> None:
    """A file with this text and nothing else, which only its owner reads."""
    with FileIO(os.fspath(path), "w", opener=_private) as file:
        file.write(text.encode())


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)
