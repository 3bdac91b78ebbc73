"""What this process and all that it has begun take of the machine."""

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor time so far, and resident memory, in which shared pages count for each process."""

    cpu_s: float
    memory_bytes: int


def hardware() -> str:
    """Short text that says what this process runs on: how many processors it may use, and of which model."""
    return f"{_processors():g} x {_processor_model()}"[:_LONGEST]


def _processors() -> float:
    """Those that it may run on, or the part of them that its control group has."""
    count = float(len(os.sched_getaffinity(0)))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return min(count, int(quota) / int(period))
    except (OSError, ValueError):  # another kind of control group, or none; `max` is no number
        return count


def _processor_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


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
