"""Files that appear when they are whole, or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kgs_core.errors import ConfigError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; `path` is replaced by it at the end of the block, unless that fails.

    Raises:
        ConfigError: it cannot be written there.
    """
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as e:
        raise ConfigError([f"{path}: {(e.strerror or 'unwritable').lower()}: name another file"]) from None
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file at once.

    Raises:
        ConfigError: it cannot be written there.
    """
    with whole_file(path) as partial:
        partial.write_bytes(content)


def check_writable(option: str, path: Path) -> None:
    """Refuse, before anything is computed, a place where no file can come to be.

    Raises:
        ConfigError: its folder is not there or not writable, or the name is a folder's.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfigError([f"{option}: {path}: its folder does not exist: create it first"])
    if path.is_dir():
        raise ConfigError([f"{option}: {path}: is a folder: name a file in it"])
    if not os.access(folder, os.W_OK):
        raise ConfigError([f"{option}: {path}: its folder cannot be written to: name another"])
