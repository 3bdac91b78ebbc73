"""The cache directory: things that are made once on a machine and used by every later process."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from kgs_core.errors import PermanentError


def cache_directory() -> Path:
    """`$KGS_CACHE`, or `~/.cache/kgs`; not created here.

    Raises:
        PermanentError: neither is known.
    """
    try:
        return Path(os.environ.get("KGS_CACHE") or Path.home() / ".cache" / "kgs").absolute()
    except RuntimeError as error:
        raise PermanentError("cache: no home directory: point KGS_CACHE at a directory to write in") from error


def build_once(target: Path, build: Callable[[Path], None]) -> Path:
    """`target`, made by `build` if it is not there yet.

    One process builds, the others wait for it. `build` fills a directory beside the target that takes the target's
    name only when it is complete, so a killed build leaves nothing that looks finished.

    Raises:
        PermanentError: the cache directory cannot be written, or whatever `build` raises.
    """
    try:
        if target.is_dir():
            return target
        # A soft lock is a file that a kill leaves behind
        with FileLock(target.with_name(target.name + ".lock"), fallback_to_soft=False):
            if not target.is_dir():
                partial = target.with_name(target.name + ".partial")
                shutil.rmtree(partial, ignore_errors=True)  # of a build that was killed
                partial.mkdir()
                build(partial)
                partial.rename(target)
    except OSError as error:
        raise PermanentError(f"cache {target.parent}: {error}: point KGS_CACHE at a directory to write in") from error
    return target


def flush(directory: Path) -> None:
    """Put all that is in it on the disk, so that after a power cut none of it is half there."""
    for path in (*directory.rglob("*"), directory):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
