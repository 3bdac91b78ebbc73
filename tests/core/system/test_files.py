"""Files come whole or not at all; logs and states, which may hold data, are for the eyes of who runs kgs."""

import os
import subprocess
import sys

import pytest

from kgs_core.errors import ConfigError
from kgs_core.runtime.throughput_log import ConsumerStatus
from kgs_core.system.files import append_privately, replacement, write_privately, write_whole
from kgs_core.system.subprocesses import ChildProcess


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


def test_a_file_stays_as_it_was_where_its_writer_fails(tmp_path):
    file = tmp_path / "figures.json"
    write_whole(file, b"before")
    with pytest.raises(TypeError), replacement(file) as draft:
        draft.write_bytes(b"half" + draft.write_text("half"))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"figures.json": "before"}


def test_a_file_is_replaced_at_the_end(tmp_path):
    file = tmp_path / "figures.json"
    write_whole(file, b"before")
    with replacement(file) as draft:
        draft.write_text("after")
        assert file.read_text() == "before"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"figures.json": "after"}


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none/figures.json: no such file or directory: name another file"):
        write_whole(tmp_path / "none/figures.json", b"")
