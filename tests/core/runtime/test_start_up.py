"""A consumer's start: what may pass is waited for; an end that is asked for meanwhile is there at once."""

import errno
import signal
import subprocess
import sys
import time

import psutil
import pytest

from kgs_core.errors import PermanentError, TransientError, UnsafeError
from kgs_core.runtime.start_up import StartUp
from kgs_core.spark.errors import passing
from kgs_core.system.shutdown import StopFlag
from tests.waiting import wait_until


def wrapped(inner):
    error = PermanentError("lake /l: cannot write there")
    error.__cause__ = inner
    return error


@pytest.mark.parametrize(
    "error",
    [
        TransientError("Kafka: No leaders found"),
        OSError(errno.ENOSPC, "No space left on device"),
        wrapped(OSError(errno.EROFS, "Read-only file system")),
        PermanentError("lake /l: cannot write there: Generic LocalFileSystem error: (os error 28): fix path or rights"),
    ],
    ids=["Kafka", "full", "read-only", "full, in the words of a library"],
)
def test_full_and_read_only_disks_and_absent_brokers_may_pass(error):
    assert passing(error)


@pytest.mark.parametrize(
    "error",
    [PermanentError("Permission denied (os error 13)"), UnsafeError("made again"), ValueError("x"), OSError(13, "no")],
)
def test_other_errors_do_not(error):
    assert passing(error) is None


class Lake:
    """Takes nothing for so many times."""

    def __init__(self, times, error):
        self.times, self.error = times, error

    def probe(self):
        if self.times:
            self.times -= 1
            raise self.error
        return "written"


def test_what_may_pass_is_waited_for_logged_once_and_reported(monkeypatch, caplog):
    monkeypatch.setattr("kgs_core.runtime.start_up._FIRST_BACKOFF_S", 0.01)
    logged = []
    with StartUp(StopFlag(), logged.append, is_hosted=True) as start_up:
        assert start_up.bear(Lake(3, OSError(errno.ENOSPC, "No space left on device")).probe) == "written"
        assert start_up.is_done()
    assert (len(logged), start_up.has_waited) == (3, True)
    assert len([r for r in caplog.records if "cannot start yet" in r.getMessage()]) == 1


def test_who_does_not_answer_is_named_while_it_is_waited_for(monkeypatch, caplog):
    """A store's client tries again for minutes before it says anything."""
    monkeypatch.setattr("kgs_core.runtime.start_up._SLOW_S", 0.05)
    with StartUp(StopFlag(), is_hosted=True) as start_up:
        start_up.bear(lambda: wait_until(lambda: caplog.records, 60, "nobody is named"), "lake s3://bucket")
        assert start_up.is_done()
    assert [r.getMessage() for r in caplog.records] == ["cannot start yet: no answer so far from lake s3://bucket"]


def test_what_does_not_pass_ends_the_start():
    with pytest.raises(PermanentError, match="refused"), StartUp(StopFlag(), is_hosted=True) as start_up:
        start_up.bear(Lake(1, PermanentError("refused")).probe)
    assert not start_up.has_waited


def test_whoever_waits_in_a_process_of_somebody_else_leaves_when_asked_to_end():
    stop = StopFlag()
    with StartUp(stop, lambda _: stop.set(), is_hosted=True) as start_up:
        start_up.bear(Lake(1000, TransientError("away")).probe)
        pytest.fail("it begins")
    assert not start_up.is_done()


def test_an_error_after_the_start_is_reported_whoever_asked_for_the_end():
    stop = StopFlag()
    start_up = StartUp(stop, is_hosted=True)
    with start_up:
        assert start_up.is_done()
        stop.set()
        error = TransientError("5 rounds failed")
        assert not start_up.__exit__(type(error), error, None)


PROGRAM = """
import subprocess, sys, time, zlib
from kgs_core.runtime.start_up import StartUp
from kgs_core.system.shutdown import stop_on_signals
with stop_on_signals() as stop, StartUp(stop) as start_up:
    child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); "
                              "print('up', flush=True); time.sleep(600)"], stdout=subprocess.PIPE)
    child.stdout.readline()
    print(child.pid, flush=True)
    {hang}
"""


@pytest.mark.parametrize(
    "hang",
    ["child.wait()", "import hashlib; hashlib.pbkdf2_hmac('sha256', b'a', b'b', 10**9)"],
    ids=["in a call that a signal interrupts", "in a library that does not return"],
)
def test_signal_during_a_start_ends_the_process_and_what_it_began(hang):
    """A process of its own: it is the end of one that is asked for. A library's call keeps Python's handler waiting."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(hang=hang)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        child = psutil.Process(int(process.stdout.readline()))
        time.sleep(0.3)  # it is in the call by then; where it is not yet, nothing is shown wrong
        process.send_signal(signal.SIGTERM)
        logged = process.communicate(timeout=30)[1]
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert b"Traceback" not in logged
    child.wait(10)
