"""The whole demonstration as people start it: no terminal, Ctrl-C, killed consumers and controllers, its own death."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

PROGRAM = "from kgs_core.cli.main import main; main()"
FIRST_ROWS_S = 320
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


def test_it_runs_through_dagster_and_every_record_arrives_exactly_once_though_a_consumer_is_killed(demo):
    run = demo("--seconds", "40")
    directory = run.directory
    address = run.wait_for(r"its UI will be at (http://127\.0\.0\.1:\d+)", 120).group(1)
    run.wait_for(rf"Dagster's UI is at {address}", 120)
    run.wait_for(r"running \d+ of 40 s", FIRST_ROWS_S)
    consumer = int(run.wait_for(r"consumer 1 \(pid (\d+)\) has joined", 10).group(1))
    runs = consumer_runs(address)
    assert {each["status"] for each in runs} <= {"STARTED", "STARTING", "QUEUED"}, runs
    assert any(tag == {"key": "kgs/consumer", "value": "1"} for each in runs for tag in each["tags"]), runs
    os.kill(consumer, signal.SIGKILL)
    run.wait_for(rf"consumer 1 \(pid {consumer}\) has left", 60)
    assert run.process.wait(FIRST_ROWS_S + END_S) == 0, run.output
    assert_is_exact(run)
    assert f"Dagster at {address}" in run.output, "the table says it, too"
    assert "the group is told to stop" in run.output
    assert processes_of(directory) == []
    assert not Path(directory).exists()


def test_without_dagster_controller_and_consumer_come_again(demo):
    run = demo("--seconds", "20", "--bare")
    directory = run.directory
    controller = int(run.wait_for(r"controller started \(pid (\d+)\)", 120).group(1))
    run.wait_for(r"running \d+ of 20 s", FIRST_ROWS_S)
    consumer = int(run.wait_for(r"consumer 1 \(pid (\d+)\) has joined", 10).group(1))
    assert len(processes_of(directory)) >= 6, "broker, generator, controller, consumer, spare and their JVMs"
    os.kill(consumer, signal.SIGKILL)
    run.wait_for(rf"consumer 1 \(pid {consumer}\) has left", 60)
    os.kill(controller, signal.SIGKILL)
    run.wait_for(r"controller has died \(SIGKILL\)[^$]*controller started", 60)
    assert run.process.wait(FIRST_ROWS_S + END_S) == 0, run.output
    assert_is_exact(run)
    assert processes_of(directory) == []
    assert not Path(directory).exists()


def test_the_stop_of_a_service_manager_ends_everything_in_order(demo, tmp_path):
    run = demo("--directory", str(tmp_path / "kept"))
    directory = run.directory
    run.wait_for(r"first rows in the lake", FIRST_ROWS_S)
    run.process.terminate()
    assert run.process.wait(150) == 0, run.output
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


def assert_is_exact(run: Run) -> None:
    summary = re.search(
        r"exactly once: ([\d,]+) records produced, ([\d,]+) rows in the lake, lost 0, doubled 0", run.output
    )
    assert summary, run.output
    assert summary.group(1) == summary.group(2) != "0"
    # What moves depends on how fast this machine starts Spark: what a dead consumer had is given away, not moved
    assert re.search(r"\d+ rebalances moved \d+ partitions, Rscore \d", run.output), run.output
    assert "Traceback" not in run.output


def consumer_runs(address: str) -> list[dict[str, Any]]:
    """The consumers' runs as Dagster's own webserver tells of them."""
    wanted = 'runsOrError(filter: {tags: [{key: "kgs/role", value: "consumer"}]})'
    found = ask(address, f"{{ {wanted} {{ ... on Runs {{ results {{ status tags {{ key value }} }} }} }} }}")
    runs: list[dict[str, Any]] = found["runsOrError"]["results"]
    return runs


def ask(address: str, query: str) -> dict[str, Any]:
    body = json.dumps({"query": query}).encode()
    asked = urllib.request.Request(f"{address}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)["data"]
    return found
