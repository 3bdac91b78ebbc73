"""A consumer that must end ends, whatever hangs; in processes of their own, since it takes them with it."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
from kgs_core.adapters.watchdog import start_watchdog

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
