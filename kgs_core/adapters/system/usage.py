"""What this process and all that it has begun take of the machine."""

from collections.abc import Iterable
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor time so far, and resident memory, in which shared pages count for each process."""

    cpu_s: float
    memory_bytes: int


def own_usage() -> Usage:
    """Of this process, its JVM and its workers."""
    this = psutil.Process()
    return usage_of([this, *this.children(recursive=True)])


def usage_of(processes: Iterable[psutil.Process]) -> Usage:
    """Of these; those that are gone meanwhile count by their parents."""
    cpu_s, memory = 0.0, 0
    for process in processes:
        try:
            times, rss = process.cpu_times(), process.memory_info().rss
        except psutil.Error:
            continue
        cpu_s += times.user + times.system + times.children_user + times.children_system
        memory += rss
    return Usage(cpu_s, memory)
