"""Folder of a process' Spark for temporary files, and the end of what killed ones have left there.

A JVM removes its files when it ends in order. One that is killed leaves them for ever, gigabytes after a while. So each
process has a folder of its own beside a file that it keeps locked for as long as it lives. The kernel lets go the lock
at any death, and tells it across boots and process namespaces, which no process id does.
"""

import fcntl
import functools
import logging
import os
import shutil
import stat
import tempfile
import uuid
from pathlib import Path

_log = logging.getLogger(__name__)
_SOCKET = len("/.00000000-0000-0000-0000-000000000000.sock")
"""What Spark calls one."""
_MOST_OF_ADDRESS = 107
_held: list[int] = []
"""Open until the process ends: a lock goes with its descriptor.

Bare descriptors, no `process_lock`: that one lets go when the interpreter clears up, and the JVM may end later.
"""


@functools.cache
def spark_folder() -> Path | None:
    """This process' folder, made; what dead processes left is removed. None: the place is not ours, Spark's own is."""
    base = Path(tempfile.gettempdir(), f"kgs-spark-{os.getuid()}")
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        found = base.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            _log.warning("%s is not ours alone: Spark's temporary files go elsewhere, and stay after a kill", base)
            return None
        _remove_dead(base)
        return _made(base)
    except OSError as e:
        _log.warning("%s: %s: Spark's temporary files go elsewhere, and stay after a kill", base, e.strerror or e)
        return None


def socket_folder() -> Path | None:
    """`spark_folder`, unless addresses of sockets in it were longer than the kernel takes: no Python worker started."""
    folder = spark_folder()
    return folder if folder is not None and len(os.fsencode(folder)) + _SOCKET <= _MOST_OF_ADDRESS else None


def _made(base: Path) -> Path:
    name = uuid.uuid4().hex[:12]  # addresses of sockets in it must be short
    new = base / f"{name}.new"
    held = os.open(new, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _held.append(held)
    folder = base / name
    folder.mkdir(mode=0o700)
    new.rename(base / f"{name}.lock")  # from here on others look at it, and find it locked
    return folder


def _remove_dead(base: Path) -> None:
    for lock in base.glob("*.lock"):
        try:
            held = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # another process was faster
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # it lives
        else:
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
            if not lock.with_suffix("").exists():
                lock.unlink(missing_ok=True)
        finally:
            os.close(held)
