"""Real children: they end as a whole, in order where they can, and with their parent."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from kgs_core.system.subprocesses import ChildProcess, session_members
from tests.waiting import wait_until

# Two of its own: one in its process group, one in a group of its own, as Spark's Python workers are.
FAMILY = """
import os, signal, subprocess, sys, time
same = subprocess.Popen(["sleep", "600"])
own = subprocess.Popen(["sleep", "600"], process_group=0)
print("family", same.pid, own.pid, flush=True)
{handler}
time.sleep(600)
"""


def child(tmp_path, program, name="child"):
    return ChildProcess(name, [sys.executable, "-c", program], tmp_path / f"{name}.log")


def family_of(process):
    """The pids that a family's eldest has told."""

    def told():
        lines = [line for line in process.log_tail(50).splitlines() if line.startswith("family")]
        return [int(word) for word in lines[-1].split()[1:]] if lines else None

    return wait_until(told, 20, "the child did not start its own")


def is_alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_end_is_in_order_where_the_child_obeys(tmp_path):
    handler = "signal.signal(signal.SIGTERM, lambda *_: (same.kill(), own.kill(), print('bye'), sys.exit(7)))"
    with child(tmp_path, FAMILY.format(handler=handler)) as process:
        process.start()
        pids = [process.pid, *family_of(process)]
        assert process.exit_code is None
        assert process.end(20) == 7
        assert process.log_tail(1) == "bye"
        assert not any(is_alive(pid) for pid in pids)


def test_a_child_that_does_not_obey_is_killed_with_all_its_own(tmp_path):
    handler = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    with child(tmp_path, FAMILY.format(handler=handler)) as process:
        process.start()
        family = family_of(process)
        pids = [process.pid, *family]
        wait_until(lambda: len(session_members(pids[0])) == 4, 20, "child, guard and two of its own")
        began = time.monotonic()
        assert process.end(0.5) == -signal.SIGKILL
        assert time.monotonic() - began < 5
        assert not any(is_alive(pid) for pid in pids)
        assert session_members(pids[0]) == []


def test_what_a_killed_child_leaves_is_gone_before_it_starts_again(tmp_path, monkeypatch):
    monkeypatch.setattr("kgs_core.system.subprocesses._AFTERMATH_S", 0.2)
    with child(tmp_path, FAMILY.format(handler="")) as process:
        process.start()
        first, orphans = process.pid, family_of(process)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: process.pid is None, 10, "its death was not noticed")
        assert process.exit_code == -signal.SIGKILL
        assert all(is_alive(pid) for pid in orphans)
        process.start()
        assert process.pid not in (None, first)
        assert not any(is_alive(pid) for pid in orphans)


def test_children_do_not_survive_a_killed_parent(tmp_path):
    program = f"""
import sys, time
from pathlib import Path
from kgs_core.system.subprocesses import ChildProcess
child = ChildProcess("c", [sys.executable, "-c", {FAMILY.format(handler="")!r}], Path({str(tmp_path / "c.log")!r}))
child.start()
print(child.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        eldest = int(parent.stdout.readline())
        same, own = family_of(ChildProcess("c", [], tmp_path / "c.log"))
        parent.kill()
    wait_until(lambda: not is_alive(eldest) and not is_alive(same), 10, "a child survived its parent")
    os.kill(own, signal.SIGKILL)  # a group of its own: Spark's workers see to their end themselves


def test_exit_code_of_a_child_that_ends_by_itself(tmp_path):
    with child(tmp_path, "print('one'); print('two'); print('three'); raise SystemExit(3)") as process:
        assert (process.pid, process.exit_code) == (None, None)
        assert process.log_tail(5) == ""
        process.start()
        assert process.wait(20)
        assert (process.pid, process.exit_code) == (None, 3)
        assert process.log_tail(2) == "two\nthree"
        assert process.end(1) == 3


def test_a_child_that_was_never_started_ends_without_a_code(tmp_path):
    assert child(tmp_path, "").end(1) is None


@pytest.mark.parametrize("times", [1, 2])
def test_killing_is_idempotent(tmp_path, times):
    process = child(tmp_path, "import time; time.sleep(600)")
    process.start()
    pid = process.pid
    for _ in range(times):
        process.kill()
    assert not is_alive(pid)
