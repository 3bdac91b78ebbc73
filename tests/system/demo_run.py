"""One demonstration as people start it, what it has said so far, and what it must have proved in the end."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.waiting import wait_until

FIRST_ROWS_S = 320
END_S = 400
"""The generator's end, consumers that catch up and may have to start first, the end of all processes, the audit."""


@dataclass
class DemoRun:
    """One demonstration in a session of its own, and what it has said so far."""

    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def output(self) -> str:
        return self.log.read_text()

    def wait_for(self, pattern: str, timeout_s: float) -> "re.Match[str]":
        def found() -> "re.Match[str] | None":
            assert self.process.poll() is None or re.search(pattern, self.output), self.output
            return re.search(pattern, self.output)

        return wait_until(found, timeout_s, f"{pattern!r} not in:\n{self.output}")

    @property
    def directory(self) -> str:
        return self.wait_for(r"everything is kept in (\S+);", 30).group(1)

    def kill_consumer(self) -> None:
        """Consumer 1, which has just joined, until the group has noticed; Spark's JVM ends with it."""
        consumer = int(self.wait_for(r"consumer 1 \(pid (\d+)\) has joined", 10).group(1))
        assert psutil.pid_exists(consumer), f"consumer 1 has ended by itself:\n{self.output}"
        jvms = [each for each in psutil.Process(consumer).children(recursive=True) if each.name() == "java"]
        assert jvms, "it runs on Spark"
        os.kill(consumer, signal.SIGKILL)
        assert psutil.wait_procs(jvms, timeout=30)[1] == []
        self.wait_for(rf"consumer 1 \(pid {consumer}\) has left", 60)

    def interrupt(self) -> None:
        """As a terminal does: the whole foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)


@contextmanager
def started(command: Sequence[str | Path], folder: Path, environ: Mapping[str, str] | None = None) -> Iterator[DemoRun]:
    """`command` in `folder`, without a terminal; what is left of it at the end is ended by its pid."""
    log = folder / "demo.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder, env=environ, start_new_session=True
        )
    run = DemoRun(process, log)
    try:
        yield run
    finally:
        process.kill()  # its children end with it
        process.wait()
    directory = run.directory
    wait_until(lambda: not processes_of(directory), 30, "processes of the demonstration are left")


def processes_of(directory: str) -> list[str]:
    """Living processes that were started for a demonstration: all have its directory in their arguments or settings."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            words = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue
        if any(directory in word for word in words):
            found.append(f"{process.pid} {process.name()}")
    return found


def assert_is_exact(run: DemoRun) -> None:
    summary = re.search(
        r"exactly once: ([\d,]+) records produced, ([\d,]+) rows in the lake, lost 0, doubled 0", run.output
    )
    assert summary, run.output
    assert summary.group(1) == summary.group(2) != "0"
    # What moves depends on how fast this machine starts Spark: what a dead consumer had is given away, not moved
    assert re.search(r"\d+ rebalances moved \d+ partitions, Rscore \d", run.output), run.output
    assert "Traceback" not in run.output
