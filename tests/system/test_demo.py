"""The whole demonstration as people start it: no terminal, Ctrl-C, killed consumers and controllers, its own death."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = "from kgs_core.cli.main import main; main()"
FIRST_ROWS_S = 180
END_S = 180


@dataclass
class Run:
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

    def interrupt(self) -> None:
        """As a terminal does: the whole foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts it with the arguments given; ends what is left of it by its pid."""
    runs: list[Run] = []

    def start(*arguments: str) -> Run:
        log = tmp_path / "demo.log"
        with log.open("wb") as out:
            command = [sys.executable, "-c", PROGRAM, "demo", *arguments]
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        runs.append(Run(process, log))
        return runs[-1]

    yield start
    for run in runs:
        run.process.kill()  # its children end with it
        run.process.wait()
        directory = run.directory
        wait_until(lambda d=directory: not processes_of(d), 30, "processes of the demonstration are left")


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


def test_it_ends_by_itself_with_every_record_exactly_once_though_consumer_and_controller_are_killed(demo):
    run = demo("--seconds", "30")
    directory = run.directory
    controller = int(run.wait_for(r"controller started \(pid (\d+)\)", 120).group(1))
    run.wait_for(r"running \d+ of 30 s", FIRST_ROWS_S)
    consumer = int(run.wait_for(r"consumer 1 \(pid (\d+)\) has joined", 10).group(1))
    assert len(processes_of(directory)) >= 6, "broker, generator, controller, consumer, spare and their JVMs"
    os.kill(consumer, signal.SIGKILL)
    run.wait_for(rf"consumer 1 \(pid {consumer}\) has left", 60)
    os.kill(controller, signal.SIGKILL)
    run.wait_for(r"controller has died \(SIGKILL\)[^$]*controller started", 60)
    assert run.process.wait(FIRST_ROWS_S + END_S) == 0, run.output
    summary = re.search(
        r"exactly once: ([\d,]+) records produced, ([\d,]+) rows in the lake, lost 0, doubled 0", run.output
    )
    assert summary, run.output
    assert summary.group(1) == summary.group(2) != "0"
    assert re.search(r"[1-9]\d* rebalances moved [1-9]\d* partitions, Rscore \d", run.output), run.output
    assert "Traceback" not in run.output
    assert processes_of(directory) == []
    assert not Path(directory).exists()


def test_ctrl_c_ends_everything_in_order(demo, tmp_path):
    run = demo("--directory", str(tmp_path / "kept"))
    directory = run.directory
    run.wait_for(r"first rows in the lake", FIRST_ROWS_S)
    run.interrupt()
    assert run.process.wait(90) == 0, run.output
    assert "interrupted: ending everything in order" in run.output
    assert "Traceback" not in run.output
    assert "lost 0, doubled 0" in run.output or "the audit was skipped" in run.output
    assert processes_of(directory) == []
    assert (tmp_path / "kept" / "kgs.yaml").exists()


def test_a_second_ctrl_c_kills_what_has_not_ended(demo, tmp_path):
    run = demo("--directory", str(tmp_path / "kept"))
    directory = run.directory
    run.wait_for(r"consumer 1 \(pid \d+\) has joined", FIRST_ROWS_S)
    run.interrupt()
    run.wait_for(r"interrupted: ending everything in order", 30)
    run.interrupt()
    assert run.process.wait(60) in (0, 1), run.output
    assert "Traceback" not in run.output
    assert processes_of(directory) == []


def test_ctrl_c_while_it_sets_up(demo):
    run = demo("--seconds", "60")
    directory = run.directory
    run.wait_for(r"starting a Kafka broker", 30)
    run.interrupt()
    assert run.process.wait(60) == 130, run.output
    assert "Traceback" not in run.output
    assert processes_of(directory) == []
    assert not Path(directory).exists()


def test_nothing_outlives_a_killed_demonstration(demo, tmp_path):
    run = demo("--directory", str(tmp_path / "killed"))
    directory = run.directory
    jvms = lambda: [name for name in processes_of(directory) if name.endswith("java")]  # noqa: E731
    wait_until(lambda: len(jvms()) >= 3, FIRST_ROWS_S, "the broker's JVM and two of Spark")
    run.process.kill()
    run.process.wait()
    wait_until(lambda: not processes_of(directory), 30, f"left: {processes_of(directory)}")
