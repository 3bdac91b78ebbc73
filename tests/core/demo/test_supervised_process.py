"""A process that is started again, and leaves alone what its earlier life has started."""

import os
import signal
import sys

import psutil
import pytest

from kgs_core.demo import supervised_process
from kgs_core.demo.supervised_process import SupervisedProcess
from kgs_core.system.shutdown import StopFlag
from tests.waiting import wait_until

SLEEPS = "import time; time.sleep(600)"
# Has a child that outlives it, as a code server has the runs that it has started
PARENT = (
    f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', '{SLEEPS}']).pid, flush=True); {SLEEPS}"
)


@pytest.fixture
def make(tmp_path, monkeypatch):
    monkeypatch.setattr(supervised_process, "RESTART_EVERY_S", 0.0)
    made = []

    def kept(program):
        logged = []
        made.append(
            SupervisedProcess(
                "daemon", [sys.executable, "-c", program], tmp_path / "daemon.log", os.environ, logged.append
            )
        )
        return made[-1], logged

    yield kept
    for each in made:
        each.kill()


def test_it_is_not_started_before_it_was_asked_for(make):
    kept, logged = make(SLEEPS)
    kept.look_after()
    assert (kept.pid, kept.has_begun, kept.trouble, logged) == (None, False, "", [])
    assert kept.end(1.0, StopFlag()) == []


def test_a_killed_one_is_started_again_and_its_children_live_on(make, tmp_path):
    kept, logged = make(PARENT)
    kept.start()
    first = kept.pid
    wait_until(lambda: (tmp_path / "daemon.log").read_text().strip(), 10, "it has started its child")
    child = psutil.Process(int((tmp_path / "daemon.log").read_text()))
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: kept.pid is None, 10, "it lives")
    kept.look_after()
    assert kept.pid not in (None, first)
    assert logged[0].startswith("daemon has died (SIGKILL)")
    assert child.is_running()
    kept.kill()
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, 10, "the child lives")


def test_one_that_dies_at_once_waits_and_says_so(make, monkeypatch):
    monkeypatch.setattr(supervised_process, "RESTART_EVERY_S", 60.0)
    kept, _ = make("raise SystemExit(1)")
    kept.start()
    wait_until(lambda: kept.pid is None, 10, "it lives")
    kept.look_after()
    assert kept.pid is None
    assert kept.trouble.startswith("daemon dead, again in ")


def test_it_ends_in_order(make):
    kept, _ = make(SLEEPS)
    kept.start()
    assert kept.end(10.0, StopFlag()) == []
    assert kept.pid is None


def test_one_that_fails_each_time_is_given_up_with_its_last_words(make):
    kept, logged = make("raise SystemExit('no port')")
    kept.start()
    for _ in range(4):
        wait_until(lambda: kept.pid is None, 10, "it lives")
        kept.look_after()
    assert kept.failure == "daemon has died (exit status 1): no port"
    assert "not started again" in logged[-1]
    assert len(logged) == 3


def test_failures_count_only_in_a_row_and_right_after_a_start(make):
    kept, _ = make("")
    seen = [kept.why_no_more(code, lived_s) for code, lived_s in ((1, 1), (1, 1), (-9, 1), (1, 1), (1, 600), (1, 1))]
    assert seen == [""] * 6
    assert [kept.why_no_more(1, 1), kept.why_no_more(1, 1)] == ["", "it fails each time"]
