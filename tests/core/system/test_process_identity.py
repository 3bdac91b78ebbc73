"""What Linux says of a process that lives or has ended."""

import os
import subprocess

from kgs_core.system.process_identity import end_with_process, start_ticks
from kgs_core.system.shutdown import StopFlag
from tests.waiting import wait_until


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


def test_stop_is_asked_for_when_the_other_process_ends_and_not_before(child):
    stop, of_a_dead_one = StopFlag(), StopFlag()
    end_with_process(child.pid, stop)
    end_with_process(2**22 + 1, of_a_dead_one)  # above the highest id that there can be
    wait_until(lambda: of_a_dead_one.is_set, 5, "a process that was gone before counts as gone")
    assert not stop.is_set
    child.kill()
    wait_until(lambda: stop.is_set, 5, "asked to end")
