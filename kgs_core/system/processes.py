"""Processes of this machine that belong to a run, found by the name of the run in their environment.

A process hands its environment to its children, so the name reaches all that a consumer has started, in whatever
process group or session that is, and outlives whoever started it.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

RUN_ID = "KGS_RUN_ID"
"""The variable that holds a run's name; a consumer puts it into its reports."""
CLASS = "KGS_CLASS"
"""The variable that holds a consumer's class; empty or missing: it was started without one."""

_PROC = Path("/proc")
_TRIES, _BEGINS_S = 5, 0.002


def find_runs(prefix: str) -> dict[str, list[psutil.Process]]:
    """The living processes of every run whose name begins with `prefix`, as far as this user may look at them."""
    mark = f"{RUN_ID}={prefix}".encode()
    found: dict[str, list[psutil.Process]] = {}
    for pid in psutil.pids():
        try:
            if (name := _run_of(pid, mark)) is not None:
                found.setdefault(name, []).append(psutil.Process(pid))
        except (OSError, psutil.Error):
            continue  # gone meanwhile, or not ours
    return found


def leader_of(members: list[psutil.Process]) -> psutil.Process | None:
    """The process that was started for the run and leads its session; None when it has ended."""
    for member in members:
        try:
            if os.getsid(member.pid) == member.pid:
                return member
        except OSError:
            continue
    return None


def environ_of_run(environ: Mapping[str, str], name: str, consumer_class: str = "") -> dict[str, str]:
    """The environment for a run's first process."""
    return {**environ, RUN_ID: name, **({CLASS: consumer_class} if consumer_class else {})}


def _run_of(pid: int, mark: bytes) -> str | None:
    """What the process's environment says; a zombie has none any more."""
    for entry in _environ(_PROC / str(pid)).split(b"\0"):
        if entry.startswith(mark):
            return entry.decode(errors="replace").partition("=")[2]
    return None


def _environ(process: Path) -> bytes:
    """Read again where it is empty, as it is for an instant while a program begins: a start would be overlooked."""
    for _ in range(_TRIES):
        if found := (process / "environ").read_bytes():
            return found
        time.sleep(_BEGINS_S)
    return b""
