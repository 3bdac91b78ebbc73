"""A consumer that must end ends, whatever hangs; in processes of their own, since it takes them with it."""

import contextlib
import os
import subprocess
import sys

import pytest

from kgs_core.system.watchdog import SparkWatch

PROGRAM = """
import logging, sys, threading
from kgs_core.system.watchdog import start_watchdog

def hangs(why):
    print("told", why, flush=True)
    threading.Event().wait()

def tells(why):
    print("told", why, flush=True)

def fails(why):
    raise OSError("database is gone")

def sits_in_the_log(there):
    with logging.getLogger().handlers[0].lock:
        there.set()
        threading.Event().wait()

logging.basicConfig()
{before}
start_watchdog(lambda now: "stuck", 0.1, {last_word})
threading.Event().wait()
"""


def ended(last_word, before=""):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(last_word=last_word, before=before)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("last_word", ["tells", "hangs"])
def test_the_reason_is_reported_and_then_the_process_ends_even_if_nobody_listens(last_word):
    done = ended(last_word)
    assert (done.returncode, done.stdout) == (1, "told stuck\n")


@pytest.mark.parametrize("last_word", ["fails", "None"])
def test_the_process_ends_when_the_reason_cannot_be_reported(last_word):
    done = ended(last_word)
    assert done.returncode == 1
    assert "stuck: ending this process" in done.stderr


def test_the_stacks_of_all_threads_come_before_the_reason():
    """The reason stays the last line: it is what the demo shows of a dead child's log."""
    *stacks, last = ended("None").stderr.splitlines()
    assert [end for end in ("in _end_process", "in <module>") if not any(s.endswith(end) for s in stacks)] == []
    assert "stuck: ending this process" in last


def test_the_stacks_show_who_holds_the_log():
    before = "there = threading.Event(); threading.Thread(target=sits_in_the_log, args=[there], daemon=True).start()"
    done = ended("None", before=f"{before}; there.wait()")
    assert "in sits_in_the_log" in done.stderr
    assert "ending this process" not in done.stderr


def test_the_reason_is_reported_where_no_file_can_be_opened_for_the_stacks():
    done = ended("tells", before="import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))")
    assert (done.returncode, done.stdout) == (1, "told stuck\n")
    assert done.stderr.splitlines()[-1].endswith("stuck: ending this process")


def test_the_process_ends_although_nobody_reads_what_it_writes():
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b"x" * 4096)
    os.set_blocking(write, True)
    try:
        program = PROGRAM.format(last_word="None", before="")
        done = subprocess.run([sys.executable, "-c", program], stderr=write, timeout=60, check=False)
    finally:
        os.close(read)
        os.close(write)
    assert done.returncode == 1


def test_a_jvm_that_is_gone_ends_the_process_where_the_loop_does_not():
    """A dataframe topic's failures stay in its round, so a consumer without its JVM lived on, and read nothing."""
    gone = []
    watch = SparkWatch(lambda: bool(gone), patience_s=30)
    assert watch.reason(0) is None
    gone.append(True)
    assert [watch.reason(now) for now in (100, 130)] == [None, None]
    assert watch.reason(131) == "Spark's JVM has ended"
