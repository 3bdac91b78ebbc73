"""A consumer that must end ends, whatever hangs; in processes of their own, since it takes them with it."""

import subprocess
import sys

import pytest

from kgs_core.adapters.system.watchdog import SparkWatch

PROGRAM = """
import sys, threading
from kgs_core.adapters.system.watchdog import start_watchdog

def hangs(why):
    print("told", why, flush=True)
    threading.Event().wait()

def tells(why):
    print("told", why, flush=True)

def fails(why):
    raise OSError("database is gone")

start_watchdog(lambda now: "stuck", 0.1, {last_word})
threading.Event().wait()
"""


def ended(last_word):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(last_word=last_word)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("last_word", ["tells", "hangs"])
def test_the_reason_is_told_and_then_the_process_ends_even_if_nobody_listens(last_word):
    done = ended(last_word)
    assert (done.returncode, done.stdout) == (1, "told stuck\n")


@pytest.mark.parametrize("last_word", ["fails", "None"])
def test_the_process_ends_when_nobody_can_be_told(last_word):
    done = ended(last_word)
    assert done.returncode == 1
    assert "stuck: ending this process" in done.stderr


def test_a_jvm_that_is_gone_ends_the_process_where_the_loop_does_not():
    """A dataframe topic's failures stay in its round, so a consumer without its JVM lived on, and read nothing."""
    gone = []
    watch = SparkWatch(lambda: bool(gone), patience_s=30)
    assert watch.reason(0) is None
    gone.append(True)
    assert [watch.reason(now) for now in (100, 130)] == [None, None]
    assert watch.reason(131) == "Spark's JVM has ended"
