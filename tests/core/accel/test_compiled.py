"""Compiled code is kept in the cache directory: made once, whole or not there, not needed by who cannot write."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from kgs_core.accel import cache_dir
from kgs_core.accel.cache_dir import build_once, cache_directory
from kgs_core.errors import PermanentError

pytestmark = pytest.mark.slow

PART = """
from kgs_core.accel.compiled import compiled

@compiled
def add(number):
    return number + {}
"""
WHOLE = """
from kgs_core.accel.compiled import compiled_once
from part import add

@compiled_once(0)
def twice(number):
    return 2 * add(number)
"""
CHILD = """
import json, os, signal, sys, tempfile

fatal, source, read_only = int(sys.argv[1]), sys.argv[2], sys.argv[3]
written, flushed, replace, sync, temporary = [], set(), os.replace, os.fsync, tempfile.TemporaryFile

def replace_and_count(old, new):
    # numba puts every file in its place by a replace: even moments are before one, odd ones after it
    for moment in range(2 * len(written), 2 * len(written) + 2):
        if moment % 2:
            replace(old, new)
        if moment == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
    written.append(str(new))

def sync_and_note(handle):
    flushed.add(os.readlink(f"/proc/self/fd/{handle}"))
    sync(handle)

def temporary_file(dir):
    if read_only and str(dir).startswith(read_only):
        raise OSError(30, "Read-only file system")
    return temporary(dir=dir)

os.replace, os.fsync, tempfile.TemporaryFile = replace_and_count, sync_and_note, temporary_file
sys.path.insert(0, source)
sys.dont_write_bytecode = True
from whole import twice
print(json.dumps({"result": twice(1), "written": len(written), "flushed": flushed >= set(written)}))
"""
MOMENTS = {"index not in place": 0, "index in place": 1, "code not in place": 2, "code in place": 3}
NEVER = -1
NOTHING, ALL = 0, 2


@pytest.fixture
def source(tmp_path):
    """A folder with two modules: a compiled function and, in another file, one that calls it."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "whole.py").write_text(WHOLE)
    change(folder, 1)
    return folder


def change(source, summand):
    (source / "part.py").write_text(PART.format(summand))


def process(source, cache, fatal=NEVER, *, read_only=""):
    """A process that calls the function, with the compiled code in `cache`."""
    environment = {**os.environ, "KGS_CACHE": str(cache), "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD, str(fatal), str(source), str(read_only)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def outcome(child, *, durable=True):
    """What it found, how many files it put in place, and what it said; all that it wrote must be on the disk."""
    out, errors = child.communicate(timeout=120)
    assert child.returncode == 0, f"ended with {child.returncode}:\n{errors}"
    found = json.loads(out)
    assert found["flushed"] or not durable, "a power cut would leave half a file under the finished name"
    return found["result"], found["written"], errors


def files(folder):
    return {path for path in folder.rglob("*") if path.suffix in {".nbi", ".nbc"}}


def test_the_first_process_compiles_and_later_ones_load(source, tmp_path):
    assert outcome(process(source, tmp_path / "cache")) == (4, ALL, "")
    assert outcome(process(source, tmp_path / "cache")) == (4, NOTHING, "")
    assert len(files(tmp_path / "cache")) == ALL
    assert {path.name for path in source.iterdir()} == {"part.py", "whole.py"}, "site-packages can be read-only"


def test_of_two_at_once_one_compiles_and_the_other_waits(source, tmp_path):
    both = [process(source, tmp_path / "cache") for _ in range(2)]
    assert sorted(outcome(child) for child in both) == [(4, NOTHING, ""), (4, ALL, "")]


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_it_writes(moment, source, tmp_path):
    child = process(source, tmp_path / "cache", MOMENTS[moment])
    child.communicate(timeout=120)
    assert child.returncode == -signal.SIGKILL
    assert outcome(process(source, tmp_path / "cache")) == (4, ALL, "")


def test_killed_while_it_compiles_and_another_waits(source, tmp_path):
    first = process(source, tmp_path / "cache")
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("cache/*.partial")):
        assert time.monotonic() < deadline, "nothing was begun"
        time.sleep(0.001)
    second = process(source, tmp_path / "cache")
    first.kill()
    first.communicate(timeout=60)
    assert outcome(second) == (4, ALL, "")


def test_what_it_calls_in_another_file_has_changed(source, tmp_path):
    """What was compiled from the source before must never run for the new one."""
    outcome(process(source, tmp_path / "cache"))
    change(source, 1000)
    process(source, tmp_path / "cache", MOMENTS["index in place"]).communicate(timeout=120)
    assert outcome(process(source, tmp_path / "cache")) == (2002, ALL, "")
    change(source, 1)
    assert outcome(process(source, tmp_path / "cache")) == (4, NOTHING, "")


def test_made_beforehand_in_an_image_that_cannot_be_written(source, tmp_path):
    """By another user, or on a read-only file system."""
    cache = tmp_path / "cache"
    outcome(process(source, cache))
    assert outcome(process(source, cache, read_only=cache)) == (4, NOTHING, "")


def test_no_home_to_write_in(source, tmp_path):
    nowhere = tmp_path / "file" / "cache"
    nowhere.parent.touch()
    result, written, errors = outcome(process(source, nowhere))
    assert (result, written) == (4, NOTHING)
    assert "point KGS_CACHE at a directory to write in" in errors
    assert {path.name for path in source.iterdir()} == {"part.py", "whole.py"}


def test_a_file_that_somebody_has_deleted_is_compiled_again(source, tmp_path):
    outcome(process(source, tmp_path / "cache"))
    for path in files(tmp_path / "cache"):
        path.unlink()
    assert outcome(process(source, tmp_path / "cache"), durable=False) == (4, ALL, "")


def test_no_home_at_all(monkeypatch):
    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("KGS_CACHE", raising=False)
    monkeypatch.setattr(cache_dir.Path, "home", unknown)
    with pytest.raises(PermanentError, match="point KGS_CACHE"):
        cache_directory()


def test_a_home_that_may_not_even_be_looked_into(monkeypatch, tmp_path):
    def forbidden(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache_dir.Path, "is_dir", forbidden)
    with pytest.raises(PermanentError, match="point KGS_CACHE"):
        build_once(tmp_path / "thing", lambda _: None)
