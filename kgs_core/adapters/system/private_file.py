"""Files that only their owner reads: logs and states hold what transforms and parsers say of the data."""

import os
from io import FileIO
from pathlib import Path


def append_privately(path: Path) -> FileIO:
    """A log to write to at its end; one that is there already keeps the rights that somebody gave it."""
    return FileIO(os.fspath(path), "a", opener=_private)


def write_privately(path: Path, text: str) -> None:
    """A file with this text and nothing else."""
    with FileIO(os.fspath(path), "w", opener=_private) as file:
        file.write(text.encode())


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)
