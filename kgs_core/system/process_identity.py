"""Facts by which Linux tells processes apart: boot, machine, namespace of process ids, and start. Linux only."""

import logging
import os
import threading
import time
from pathlib import Path

from kgs_core.system.shutdown import StopFlag

_PROC = Path("/proc")
_MACHINE_ID = Path("/etc/machine-id")
_WATCH_S = 0.5
_log = logging.getLogger(__name__)
_STATE, _START = 0, 19  # of the fields behind the name: 3 and 22 in proc(5), which counts from 1
_DEAD_STATES = ("Z", "X", "x")


def end_with_process(pid: int, stop: StopFlag) -> None:
    """Set `stop` when the process that has this id now is gone; looked after in a thread of its own.

    One that is gone already counts: whoever starts us may have died before we got here.
    """
    began = start_ticks(pid)

    def watch() -> None:
        while began is not None and start_ticks(pid) == began:
            time.sleep(_WATCH_S)
        _log.warning("ending: process %d is gone", pid)
        stop.set()

    threading.Thread(target=watch, name="end-with", daemon=True).start()


def boot_id() -> str:
    """Linux' id of this machine's present run."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def machine_id() -> str:
    """The machine's id, the same over all boots; empty where it has none."""
    try:
        return _MACHINE_ID.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def pid_namespace() -> int:
    """Which namespace our process ids are of; 0 where the kernel does not tell."""
    try:
        return (_PROC / "self/ns/pid").stat().st_ino
    except OSError:
        return 0


def start_ticks(pid: int) -> int | None:
    """Clock ticks from boot to the start of a living process; None when there is none: a zombie no longer lives."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(")") + 1 :].split()  # the name stands in brackets and may hold blanks and brackets
    return None if fields[_STATE] in _DEAD_STATES else int(fields[_START])


def is_hidden(pid: int) -> bool:
    """Whether /proc keeps a living process from us (mounted with hidepid): it would look as if it were gone."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return False
