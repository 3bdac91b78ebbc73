"""Compiled code is kept in files: what a process that was killed, or a power cut, left there must do no harm."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

PACK = """
import numpy as np
from kgs_core.packing.search.relabel import _assign
result = _assign(np.random.default_rng(7).random((9, 12))).tolist()
"""

CHILD = """
import json, os, signal, sys
fatal, written, replace = int(sys.argv[1]), 0, os.replace

def replace_and_count(*names):
    # numba puts every file in its place by a replace: even moments are before one, odd ones after it
    global written
    for moment in range(2 * written, 2 * written + 2):
        if moment % 2:
            replace(*names)
        if moment == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
    written += 1

os.replace = replace_and_count
space = {}
exec(sys.argv[2], space)
print(json.dumps({"result": space["result"], "written": written}))
"""
MOMENTS = {"index not in place": 0, "index in place": 1, "code not in place": 2, "code in place": 3}
MISSING = {"index not in place": 2, "index in place": 1, "code not in place": 1, "code in place": 0}
"""Files that the next process has to write."""
NEVER = -1


def process(folder, code=PACK, fatal=NEVER):
    """A process that packs, with the compiled code in `folder`."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD, str(fatal), code]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def outcome(child):
    out, errors = child.communicate(timeout=120)
    assert child.returncode == 0, f"ended with {child.returncode}:\n{errors}"
    return json.loads(out)


def files(folder, ending=""):
    return sorted(path for path in folder.rglob(f"*{ending}") if path.is_file())


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """What a process finds that no other was before."""
    folder = tmp_path_factory.mktemp("clean")
    found = outcome(process(folder))
    assert found["written"] == len(files(folder)) == 2
    return found["result"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_it_writes(moment, clean, tmp_path):
    child = process(tmp_path, fatal=MOMENTS[moment])
    child.communicate(timeout=120)
    assert child.returncode == -signal.SIGKILL
    assert bool(files(tmp_path, ".tmp.*")) == ("not in place" in moment)
    assert outcome(process(tmp_path)) == {"result": clean, "written": MISSING[moment]}


def test_killed_as_soon_as_there_is_a_file(clean, tmp_path):
    child = process(tmp_path)
    deadline = time.monotonic() + 60
    while not files(tmp_path):
        assert time.monotonic() < deadline, "nothing was written"
        time.sleep(0.001)
    child.kill()
    child.communicate(timeout=60)
    assert outcome(process(tmp_path))["result"] == clean


ADD = """
from kgs_core.packing.compiled import compiled

@compiled
def add(number):
    return number + {}
"""


def adding(folder, summand):
    """A module with one compiled function; returns what a process runs that calls it."""
    (folder / "adding.py").write_text(ADD.format(summand))
    return f"import sys; sys.path.insert(0, {str(folder)!r}); import adding; result = adding.add(1)"


@pytest.mark.parametrize("moment", ["index in place", "code in place"])
def test_killed_while_it_compiles_a_new_version(moment, tmp_path):
    """What was compiled from the source before must never run for the new one."""
    folder = tmp_path / "cache"
    assert outcome(process(folder, adding(tmp_path, 1)))["result"] == 2
    code = adding(tmp_path, 1000)
    process(folder, code, fatal=MOMENTS[moment]).communicate(timeout=120)
    assert outcome(process(folder, code))["result"] == 1001


def test_what_a_compiled_function_calls_in_another_file_has_changed(tmp_path):
    folder = tmp_path / "cache"
    (tmp_path / "calling.py").write_text(
        "from adding import add\nfrom kgs_core.packing.compiled import compiled\n"
        "@compiled\ndef twice(number):\n    return 2 * add(number)\n"
    )
    for summand in (1, 1000):
        code = f"{adding(tmp_path, summand)}; import calling; result = calling.twice(1)"
        assert outcome(process(folder, code))["result"] == 2 * (1 + summand)
    assert outcome(process(folder, code))["written"] == 0


@pytest.fixture(scope="module")
def added(tmp_path_factory):
    """What a process runs, and the folder with what it compiled."""
    home = tmp_path_factory.mktemp("added")
    code = adding(home, 1)
    assert outcome(process(home / "cache", code))["result"] == 2
    return code, home / "cache"


def _empty(data):
    return b""


def _half(data):
    return data[: len(data) // 2]


def _zeros_in_machine_code(data):
    """All around it can be read."""
    start = data.index(b"\x7fELF") + 64
    return data[:start] + bytes(64) + data[start + 64 :]


@pytest.mark.parametrize(
    ("ending", "damage"),
    [(".nbi", _empty), (".nbi", _half), (".nbc", _empty), (".nbc", _half), (".nbc", _zeros_in_machine_code)],
)
def test_a_file_that_a_power_cut_has_torn(ending, damage, added, tmp_path):
    code, whole = added
    folder = shutil.copytree(whole, tmp_path / "torn")
    (torn,) = files(folder, ending)
    torn.write_bytes(damage(torn.read_bytes()))
    assert outcome(process(folder, code))["result"] == 2
    assert outcome(process(folder, code)) == {"result": 2, "written": 0}, "it is compiled anew again and again"
