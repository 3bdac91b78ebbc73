"""Processes of a machine: which one this is, and whether another one is gone.

That is told by who shares its machine and its process ids. A pid means something within one pid namespace of one boot
only. Another machine may have our host name (`localhost`, cloned images), and a container may have our host name and
our boot, but process ids of its own: of their processes nobody here can say anything. Linux only.
"""

import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from kgs_core.errors import PermanentError
from kgs_core.group.protocol import Process
from kgs_core.system.process_identity import boot_id, is_hidden, machine_id, pid_namespace, start_ticks
from kgs_core.system.processes import RUN_ID

_FIRST_NAMESPACE = 0xEFFFFFFC  # the kernel's PROC_PID_INIT_INO: processes that are in no container
_Text = Annotated[str, Field(strict=True)]
_Number = Annotated[int, Field(strict=True, ge=0)]


@dataclass(frozen=True, slots=True)
class HostProcess:
    """A process of a machine: enough to tell, on that machine, whether it is gone.

    Attributes:
        boot_id: Linux' id of the machine's present run.
        start_ticks: clock ticks from boot to its start (`/proc/<pid>/stat`, field 22): tells it from a later process
            with the same pid.
        machine_id: which machine, over its boots (`/etc/machine-id`); empty where it has none.
        pid_namespace: the world that `pid` counts in (inode of `/proc/self/ns/pid`): a container has one of its own.
    """

    host: _Text
    boot_id: _Text
    pid: _Number
    start_ticks: _Number
    run_id: _Text = ""
    machine_id: _Text = ""
    pid_namespace: _Number = 0

    @classmethod
    def current(cls, environ: Mapping[str, str] | None = None) -> "HostProcess":
        """The process that calls; a PermanentError where this is no Linux."""
        pid = os.getpid()
        ticks = start_ticks(pid)
        if ticks is None:
            raise PermanentError("/proc: no such folder: a consumer joins its group on Linux only")
        run_id = (os.environ if environ is None else environ).get(RUN_ID, "")
        return cls(socket.gethostname(), boot_id(), pid, ticks, run_id, machine_id(), pid_namespace())

    @classmethod
    def of(cls, process: Process) -> "HostProcess | None":
        """What a report says of its process; None where it is of another kind."""
        try:
            return _FORM.validate_python(process.parts)
        except ValidationError:
            return None

    def as_process(self) -> Process:
        """Itself, as reports name it."""
        return Process(asdict(self))

    def is_gone(self) -> bool | None:
        """Whether it is gone for certain; None where that cannot be told: it is in another world, or hidden from us.

        With an earlier boot of this very machine it is gone, but not where it was in a container: numbers of namespaces
        begin anew with every boot, and images may bring a machine id along.
        """
        if (self.host, self.pid_namespace) != (socket.gethostname(), pid_namespace()):
            return None
        if self.boot_id != boot_id():
            is_of_this_machine = self.machine_id != "" and self.machine_id == machine_id()
            return True if is_of_this_machine and self.pid_namespace == _FIRST_NAMESPACE else None
        ticks = start_ticks(self.pid)
        return None if ticks is None and is_hidden(self.pid) else ticks != self.start_ticks


_FORM = TypeAdapter(HostProcess)


def this_process(environ: Mapping[str, str] | None = None) -> Process:
    """The process that calls, as its reports name it: see `HostProcess.current`."""
    return HostProcess.current(environ).as_process()


def is_gone(process: Process) -> bool | None:
    """Whether a process is gone for certain; None where that cannot be told from here, and of another kind."""
    known = HostProcess.of(process)
    return None if known is None else known.is_gone()
