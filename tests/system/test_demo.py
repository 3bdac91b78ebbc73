"""The whole demonstration as people start it: no terminal, Ctrl-C, a killed consumer, its own death.

From the wheel, through Dagster and on Spark, as people run it, where every record is counted: files that a wheel lacks
are missed by those processes alone. Through Dagster, too, where its processes are what must end.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.system.dagster_room import ask
from tests.system.demo_run import END_S, FIRST_ROWS_S, DemoRun, assert_is_exact, processes_of, started
from tests.waiting import wait_until
from tests.wheel import build_wheel, environ, install

pytestmark = [pytest.mark.chaos, pytest.mark.slow(70), pytest.mark.timeout(900)]

PROGRAM = "from kgs_core.cli.main import main; main()"


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., DemoRun]]:
    """Starts it with the arguments given."""
    with ExitStack() as running:
        yield lambda *arguments: running.enter_context(
            started([sys.executable, "-c", PROGRAM, "demo", *arguments], tmp_path)
        )


@pytest.mark.spark
@pytest.mark.slow(150)
def test_from_the_wheel_every_record_arrives_exactly_once_through_dagster_though_a_consumer_is_killed(tmp_path):
    """No source is beside it: what nobody with a checkout would notice is missing."""
    room = tmp_path / "elsewhere"
    for folder in (tmp_path / "source", room):
        folder.mkdir()
    install(build_wheel(tmp_path / "source"), room)
    with started([room / "venv/bin/kgs", "demo", "--seconds", "15"], room, environ()) as run:
        directory = run.directory
        address = run.wait_for(r"its UI will be at (http://127\.0\.0\.1:\d+)", 120).group(1)
        run.wait_for(rf"Dagster's UI is at {address}", 120)
        run.wait_for(r"running \d+ of 15 s", FIRST_ROWS_S)
        runs = consumer_runs(address)
        assert {each["status"] for each in runs} <= {"STARTED", "STARTING", "QUEUED"}, runs
        assert any(tag == {"key": "kgs/consumer", "value": "1"} for each in runs for tag in each["tags"]), runs
        run.kill_consumer()
        assert run.process.wait(FIRST_ROWS_S + END_S) == 0, run.output
        assert_is_exact(run)
        assert f"Dagster at {address}" in run.output, "the table says it, too"
        assert "the group is told to stop" in run.output
        assert processes_of(directory) == []
        assert not Path(directory).exists()


def test_the_stop_of_a_service_manager_ends_everything_in_order(demo, tmp_path):
    """Without Dagster, whose end in order is that of the test above; a controller that was killed has come again."""
    run = demo("--bare", "--directory", str(tmp_path / "kept"))
    directory = run.directory
    controller = int(run.wait_for(r"controller started \(pid (\d+)\)", 120).group(1))
    run.wait_for(r"first rows in the lake", FIRST_ROWS_S)
    os.kill(controller, signal.SIGKILL)
    run.wait_for(r"controller has died \(SIGKILL\)[^$]*controller started", 60)
    run.process.terminate()
    assert run.process.wait(150) == 0, run.output
    assert "interrupted: ending everything in order" in run.output
    assert "Traceback" not in run.output
    assert "lost 0, doubled 0" in run.output or "the audit was skipped" in run.output
    assert processes_of(directory) == []
    assert (tmp_path / "kept" / "kgs.yaml").exists()


def test_a_second_ctrl_c_kills_what_has_not_ended(demo, tmp_path):
    """Without Dagster: what it does then is tried beside the code, in `core/demo/test_dagster_control.py`."""
    run = demo("--bare", "--directory", str(tmp_path / "kept"))
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
    """Nor a consumer's JVM the consumer: see `DemoRun.kill_consumer`."""
    run = demo("--directory", str(tmp_path / "killed"))
    directory = run.directory
    run.wait_for(r"consumer 1 \(pid \d+\) has joined", FIRST_ROWS_S)
    run.process.kill()
    run.process.wait()
    wait_until(lambda: not processes_of(directory), 30, f"left: {processes_of(directory)}")


def consumer_runs(address: str) -> list[dict[str, Any]]:
    """The consumers' runs as Dagster's own webserver tells of them."""
    wanted = 'runsOrError(filter: {tags: [{key: "kgs/role", value: "consumer"}]})'
    found = ask(address, f"{{ {wanted} {{ ... on Runs {{ results {{ status tags {{ key value }} }} }} }} }}")
    runs: list[dict[str, Any]] = found["runsOrError"]["results"]
    return runs
