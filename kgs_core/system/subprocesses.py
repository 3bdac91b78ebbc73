"""Child processes that end as a whole: each has a session of its own, and none outlives this process."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from kgs_core.system.files import append_privately

# The child ends with its parent by a pipe, not by PR_SET_PDEATHSIG: that fires when the parent's *thread* ends, and
# reaches one process only. The guard holds the read end; when the write end is gone, by whatever death, it kills its
# whole process group. That number cannot be another's by then, because the guard itself is in it.
_GUARDED = 'exec 3<&0 </dev/null; (read -r _; kill -9 0) <&3 >/dev/null 2>&1 & exec "$@" 3<&-'
_AFTERMATH_S = 5.0
_KILL_TIMEOUT_S = 5.0
_POLL_S = 0.05
_TAIL_BYTES = 65_536


class ChildProcess:
    """One command that can be started again and again; a context manager that kills what is left of it.

    Its whole session belongs to it: Spark's JVM is in the child's process group, Spark's Python workers are in a group
    of their own but in the same session.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log_file: Path,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            log_file: gets what it says on stdout and stderr, start after start.
            environ: its environment; this process's own when None.
            folder: where it runs; this process's own when None.
        """
        self.name = name
        self.log_file = log_file
        self._command = tuple(command)
        self._environ = environ
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it; what is left of an earlier life may end in order for up to 5 s and is killed then."""
        if self.pid is None:
            self._wait_for_aftermath()
        self.kill()
        with append_privately(self.log_file) as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARDED, self.name, *self._command],  # `exec` keeps the process id
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environ,
                cwd=self._folder,
                start_new_session=True,  # a Ctrl-C in the terminal is for the parent, which ends its children in order
            )

    @property
    def pid(self) -> int | None:
        """The process id; None when it is not running."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        """As `Popen.returncode`: None while it runs and before the first start, -N when signal N ended it."""
        return self._process.poll() if self._process is not None else None

    def log_tail(self, lines: int) -> str:
        """The last lines of its log."""
        if not self.log_file.exists():
            return ""
        with self.log_file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])

    def terminate(self) -> None:
        """Asks it to end (SIGTERM). The child alone: it must be able to finish with the help of its own children."""
        if self._process is not None:
            self._process.terminate()

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended, after at most `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        while self.pid is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def end(self, timeout_s: float) -> int | None:
        """Ends it: SIGTERM, after `timeout_s` SIGKILL for what is left. Its exit code; None: it was never started."""
        if self._process is None:
            return None
        self.terminate()
        if self.wait(timeout_s):
            self._wait_for_aftermath()
        process = self._process
        self.kill()
        return process.returncode

    def kill(self) -> None:
        """Ends it and every process of its session at once (SIGKILL)."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()  # the guard kills the group
        deadline = time.monotonic() + _KILL_TIMEOUT_S
        while time.monotonic() < deadline:
            process.poll()
            left = session_members(process.pid)
            if not left and process.returncode is not None:
                return
            for member in left:
                _kill(member)
            time.sleep(_POLL_S)

    def _wait_for_aftermath(self) -> None:
        """Lets what the child leaves behind end in order: a JVM deletes its temporary files after its driver's end."""
        deadline = time.monotonic() + _AFTERMATH_S
        # one is left: the guard
        while self._process and len(session_members(self._process.pid)) > 1 and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def __enter__(self) -> "ChildProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def session_members(session: int) -> list[psutil.Process]:
    """The living processes of a session, whatever process group they are in and whoever has adopted them."""
    found = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == session:
                process = psutil.Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        except (ProcessLookupError, PermissionError, psutil.Error):
            continue  # gone meanwhile, or not ours
    return found


def _kill(process: psutil.Process) -> None:
    try:
        process.send_signal(signal.SIGKILL)  # psutil makes sure that the id is still this process's
    except psutil.NoSuchProcess:
        return
