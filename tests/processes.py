"""Processes that reports of tests name."""

from kgs_core.fleet.host_process import HostProcess
from kgs_core.group.protocol import Process


def a_process(number: int = 1, run_id: str = "") -> Process:
    """One of many, of no kind that a fleet knows, since who carries it must not ask."""
    return Process({"number": number, "run_id": run_id})


def pid_of(process: Process | None) -> int:
    """Of one that really runs on a machine, as its report says it."""
    known = HostProcess.of(process) if process is not None else None
    assert known is not None
    return known.pid
