"""Locks between the processes of a machine, which end with the process that holds them, however that ends."""

from pathlib import Path

from filelock import FileLock


def process_lock(path: Path, *, waits: bool) -> FileLock:
    """Lock on a file, which is made with its folder where it is missing, and stays; a context manager.

    Args:
        waits: whether taking it waits for another holder, in this process or another; else it raises
            `filelock.Timeout`.
    """
    # A soft lock is a file that a kill leaves behind: where the kernel has no locks, taking one fails instead
    return FileLock(path, blocking=waits, thread_local=False, fallback_to_soft=False)
