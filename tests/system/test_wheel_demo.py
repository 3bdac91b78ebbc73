"""The demonstration from the wheel, with no source beside it: what nobody with a checkout would notice is missing.

A real broker and real Spark, because the files that could be missing are those that their processes need. Without
Dagster; that controller and consumers come again when they are killed is tried here, too.
"""

import os
import signal
from pathlib import Path

import pytest

from tests.system.demo_run import END_S, FIRST_ROWS_S, assert_is_exact, processes_of, started
from tests.wheel import build_wheel, environ, install

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow(90), pytest.mark.timeout(900)]


def test_the_demonstration_runs_from_the_wheel_to_its_proof_and_controller_and_consumer_come_again(
    tmp_path: Path,
) -> None:
    room = tmp_path / "elsewhere"
    for folder in (tmp_path / "source", room):
        folder.mkdir()
    install(build_wheel(tmp_path / "source"), room)
    with started([room / "venv/bin/kgs", "demo", "--bare", "--seconds", "30"], room, environ()) as run:
        directory = run.directory
        controller = int(run.wait_for(r"controller started \(pid (\d+)\)", 120).group(1))
        run.wait_for(r"running \d+ of 30 s", FIRST_ROWS_S)
        assert len(processes_of(directory)) >= 6, "broker, generator, controller, consumer, spare and their JVMs"
        os.kill(controller, signal.SIGKILL)
        run.wait_for(r"controller has died \(SIGKILL\)[^$]*controller started", 60)
        run.kill_consumer()  # it has hardly begun, and finds one dead
        assert run.process.wait(FIRST_ROWS_S + END_S) == 0, run.output
        assert_is_exact(run)
        assert processes_of(directory) == []
        assert not Path(directory).exists()
