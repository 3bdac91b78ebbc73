"""The controller of a demonstration as a process: started again, given up, ended."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kgs_core.config import parse_settings
from kgs_core.demo import supervised_process
from kgs_core.demo.bare_control import BareControl
from kgs_core.demo.layout import Layout
from kgs_core.system.shutdown import StopFlag
from tests.waiting import wait_until

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"


@dataclass(frozen=True)
class Stub:
    """A layout whose controller is a program of the test's."""

    directory: Path
    program: str
    consumer_logs: Path
    config_file: Path

    def control_command(self, end_with):
        assert end_with == os.getpid()
        return [sys.executable, "-c", self.program]

    def log_file(self, name):
        return self.directory / f"{name}.log"


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.setattr(supervised_process, "RESTART_EVERY_S", 0.0)
    controls = []

    def make(program):
        settings = parse_settings(Layout(tmp_path).configuration("127.0.0.1:1").encode(), "kgs.yaml", {})
        layout = Stub(tmp_path, program, tmp_path / "logs", tmp_path / "kgs.yaml")
        logged = []
        control = BareControl(layout, settings, os.environ, logged.append)
        controls.append(control)
        control.start()
        return control, logged

    yield make
    for control in controls:
        control.kill()


def pid_of(control):
    state = control.state
    return int(state.rpartition(" ")[2]) if state.startswith("controller pid") else None


def test_one_that_another_has_taken_over_from_is_not_started_again(made):
    control, logged = made("print('error: fenced'); raise SystemExit(3)")
    wait_until(lambda: pid_of(control) is None, 10, "it lives")
    control.look_after()
    control.look_after()
    assert control.state == "no controller"
    assert len(logged) == 2
    assert "error: fenced" in logged[1]
    assert "not started again" in logged[1]
    assert control.failure == "controller has died (exit status 3): error: fenced"


def test_a_deaf_controller_is_killed_at_once_and_that_is_reported(made, tmp_path):
    control, _ = made(DEAF)
    pid = pid_of(control)
    wait_until(lambda: "deaf" in (tmp_path / "controller.log").read_text(), 10, "it does not start")
    interrupt = StopFlag()
    interrupt.set()
    (problem,) = control.end(interrupt)
    assert problem.startswith("controller did not end in order (SIGKILL)")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_dead_controller_is_no_problem_at_the_end(made):
    control, _ = made("raise SystemExit(1)")
    wait_until(lambda: pid_of(control) is None, 10, "it lives")
    assert control.end(StopFlag()) == []
