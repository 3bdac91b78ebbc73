"""Locks that no death leaves behind."""

import errno
import fcntl
import subprocess
import sys
import threading

import pytest
from filelock import Timeout

from kgs_core.system.locks import process_lock

HOLDER = """
import sys, time
from pathlib import Path
from kgs_core.system.locks import process_lock
lock = process_lock(Path(sys.argv[1]), waits=False)
lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


def test_a_lock_that_a_process_holds_is_free_when_it_is_killed(tmp_path):
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Timeout), process_lock(path, waits=False):
            pass
        waiter = threading.Thread(target=lambda: process_lock(path, waits=True).acquire())
        waiter.start()
        waiter.join(0.2)
        assert waiter.is_alive()
        holder.kill()
    waiter.join(10)
    assert not waiter.is_alive()


def test_a_lock_may_be_given_back_by_another_thread(tmp_path):
    lock = process_lock(tmp_path / "lock", waits=False)
    taker = threading.Thread(target=lock.acquire)
    taker.start()
    taker.join()
    with pytest.raises(Timeout):
        process_lock(tmp_path / "lock", waits=False).acquire()
    lock.release()
    with process_lock(tmp_path / "lock", waits=False):
        pass


def test_where_the_kernel_has_no_locks_none_is_taken(tmp_path, monkeypatch):
    """A file in its place would outlive a kill, and hold up all that come later."""

    def flock(*_):
        raise OSError(errno.ENOSYS, "no locks here")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match="no locks here"):
        process_lock(tmp_path / "lock", waits=False).acquire()
