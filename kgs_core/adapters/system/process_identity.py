"""Which process this is, and whether another one is gone: told by who shares its machine and its process ids.

A pid means something within one pid namespace of one boot only. Another machine may have our host name (`localhost`,
cloned images), and a container may have our host name and our boot, but process ids of its own: of their processes
nobody here can say anything. Linux only.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from kgs_core.adapters.system.processes import RUN_ID
from kgs_core.adapters.system.shutdown import StopFlag
from kgs_core.errors import PermanentError
from kgs_core.protocol import Process

_PROC = Path("/proc")
_MACHINE_ID = Path("/etc/machine-id")
_FIRST_NAMESPACE = 0xEFFFFFFC  # the kernel's PROC_PID_INIT_INO: processes that are in no container
_WATCH_S = 0.5
_log = logging.getLogger(__name__)
_STATE, _START = 0, 19  # of the fields behind the name: 3 and 22 in proc(5), which counts from 1
_DEAD_STATES = ("Z", "X", "x")


def this_process(environ: Mapping[str, str] | None = None) -> Process:
    """The process that calls.

    Args:
        environ: holds the run's name, if any; this process's own when None.

    Raises:
        PermanentError: this is no Linux.
    """
    pid = os.getpid()
    ticks = start_ticks(pid)
    if ticks is None:
        raise PermanentError("/proc: no such folder: a consumer joins its group on Linux only")
    run_id = (os.environ if environ is None else environ).get(RUN_ID, "")
    return Process(socket.gethostname(), boot_id(), pid, ticks, run_id, machine_id(), pid_namespace())


def is_gone(process: Process) -> bool | None:
    """Whether a process is gone for certain; None where that cannot be told: in another world, or hidden from us.

    One that does not say its namespace is of an older version: it is told by host name and boot alone, as it was
    then, because otherwise nobody could tell of the runs that an upgrade ends.
    """
    is_of_this_boot = process.boot_id == boot_id()
    if process.host != socket.gethostname():
        return None
    if process.pid_namespace and not _can_tell(process, is_of_this_boot=is_of_this_boot):
        return None
    if not is_of_this_boot:
        return True
    ticks = start_ticks(process.pid)
    return None if ticks is None and _is_hidden(process.pid) else ticks != process.start_ticks


def _can_tell(process: Process, *, is_of_this_boot: bool) -> bool:
    """Whether its process ids are ours; of another boot, whether that was this very machine's.

    Not of a container's: numbers of namespaces begin anew with every boot, and images may bring a machine id along.
    """
    if process.pid_namespace != pid_namespace():
        return False
    is_of_this_machine = process.machine_id != "" and process.machine_id == machine_id()
    return is_of_this_boot or (is_of_this_machine and process.pid_namespace == _FIRST_NAMESPACE)


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


def _is_hidden(pid: int) -> bool:
    """Whether /proc keeps a living process from us (mounted with hidepid): it would look as if it were gone."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return False
