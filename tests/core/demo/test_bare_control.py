"""The controller of a demonstration as a process: started again, given up, ended."""

import os

import pytest

from kgs_core.config import parse_settings
from kgs_core.demo import supervised_process
from kgs_core.demo.bare_control import BareControl
from kgs_core.demo.layout import Layout
from kgs_core.system.shutdown import StopFlag
from tests.core.demo.demo_words import ProgramLayout
from tests.waiting import wait_until

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.setattr(supervised_process, "RESTART_EVERY_S", 0.0)
    controls = []

    def make(program):
        settings = parse_settings(Layout(tmp_path).configuration("127.0.0.1:1").encode(), "kgs.yaml", {})
        logged = []
        control = BareControl(ProgramLayout(tmp_path, program), settings, os.environ, logged.append)
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
