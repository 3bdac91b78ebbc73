"""Telling one process from another that has got its number."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from kgs_core.adapters.process_identity import end_with_process, is_gone, start_ticks, this_process
from kgs_core.adapters.stop_flag import StopFlag
from tests.waiting import wait_until


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def test_this_process_is_told_with_the_run_it_belongs_to():
    me = this_process({"KGS_RUN_ID": "run-7"})
    assert (me.pid, me.run_id, len(me.boot_id)) == (os.getpid(), "run-7", 36)
    assert this_process({}).run_id == ""
    assert is_gone(me) is False


def test_name_with_blanks_and_brackets_does_not_shift_the_fields(tmp_path):
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([program, "600"])
    try:
        wait_until(lambda: start_ticks(process.pid) is not None, 5, "started")
        assert 0 <= start_ticks(process.pid) - start_ticks(os.getpid()) < 100_000_000
    finally:
        process.kill()
        process.wait()


def test_zombie_is_gone(child):
    known = replace(this_process({}), pid=child.pid, start_ticks=start_ticks(child.pid))
    assert is_gone(known) is False
    child.send_signal(signal.SIGKILL)
    wait_until(lambda: is_gone(known), 5, "gone, although nobody has asked for its exit status")


def test_another_process_with_the_same_id_is_not_the_one_meant():
    me = this_process({})
    assert is_gone(replace(me, start_ticks=me.start_ticks - 1)) is True
    assert is_gone(replace(me, boot_id="another")) is True


def test_process_of_another_machine_cannot_be_told():
    assert is_gone(replace(this_process({}), host="elsewhere", pid=2**22)) is None


def test_process_of_another_user_is_seen(child):
    assert is_gone(replace(this_process({}), pid=1, start_ticks=start_ticks(1))) is False


def test_stop_is_asked_for_when_the_other_process_ends_and_not_before(child):
    stop, of_a_dead_one = StopFlag(), StopFlag()
    end_with_process(child.pid, stop)
    end_with_process(2**22 + 1, of_a_dead_one)  # above the highest id that there can be
    wait_until(lambda: of_a_dead_one.is_set, 5, "a process that was gone before counts as gone")
    assert not stop.is_set
    child.kill()
    wait_until(lambda: stop.is_set, 5, "asked to end")
