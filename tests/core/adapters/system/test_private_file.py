"""Logs and states are for the eyes of who runs kgs: parse errors and transforms' exceptions may hold data."""

import os
import subprocess
import sys

import pytest

from kgs_core.adapters.system.private_file import append_privately, write_privately
from kgs_core.adapters.system.subprocesses import ChildProcess
from kgs_core.runtime.throughput_log import ConsumerStatus


@pytest.fixture(autouse=True)
def generous():
    """A umask that would let everybody read."""
    before = os.umask(0)
    yield
    os.umask(before)


def rights(path):
    return oct(path.stat().st_mode & 0o777)


def test_a_new_log_is_for_its_owner_and_is_added_to(tmp_path):
    log = tmp_path / "consumer-1.log"
    for line in (b"one\n", b"two\n"):
        with append_privately(log) as out:
            subprocess.run([sys.executable, "-c", f"import os; os.write(1, {line!r})"], stdout=out, check=True)
    assert (log.read_bytes(), rights(log)) == (b"one\ntwo\n", "0o600")


def test_a_log_that_somebody_has_opened_to_others_stays_open(tmp_path):
    """Who collects logs was let in on purpose."""
    log = tmp_path / "consumer-1.log"
    log.touch(0o640)
    append_privately(log).close()
    assert rights(log) == "0o640"


def test_a_file_is_written_anew(tmp_path):
    file = tmp_path / "state"
    for text in ("a longer one", "ü"):
        write_privately(file, text)
        assert (file.read_text(), rights(file)) == (text, "0o600")


def test_what_children_say_and_what_a_consumer_says_of_itself_is_private(tmp_path):
    child = ChildProcess("c", [sys.executable, "-c", "pass"], tmp_path / "c.log")
    with child:
        child.start()
        child.wait(30)
    ConsumerStatus(1, tmp_path / "status.json").write([])
    assert {rights(tmp_path / name) for name in ("c.log", "status.json")} == {"0o600"}
