"""Processes that call themselves something, as those of runs do."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from kgs_core.fleet.host_process import HostProcess
from kgs_core.system.process_identity import start_ticks


@contextmanager
def a_process(title: str, *, is_deaf: bool = True) -> Iterator[tuple[subprocess.Popen[bytes], HostProcess]]:
    """A living process, which may hear nothing but SIGKILL; ended with the block."""
    script = ('trap "" INT TERM; ' if is_deaf else "") + 'printf %s "$0" > /proc/$$/comm; echo; read answer'
    child = subprocess.Popen(["bash", "-c", script, title], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        yield child, replace(HostProcess.current({}), pid=child.pid, start_ticks=start_ticks(child.pid) or 0)
    finally:
        child.kill()
        child.communicate()
