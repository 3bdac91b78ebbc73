"""Loops compiled once and loaded without numba: kept whole, made anew when their source changes, unable to raise."""

import os
import subprocess
import sys

import pytest

from kgs_core.adapters.system import machine_code
from kgs_core.errors import PermanentError

SOURCE = """
ENTRIES = {{"add": 2}}

def add(one, other):
    return {body}
"""
USE = """
import string, sys
from kgs_core.adapters.system.machine_code import machine_code
loops = machine_code("loops_of_a_test", ["string"])
print(loops["add"](40, 2), "numba" in sys.modules)
"""


@pytest.fixture
def use(tmp_path):
    """What a process of its own prints that uses loops with this body."""

    def run(body):
        (tmp_path / "loops_of_a_test.py").write_text(SOURCE.format(body=body))
        paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
        environment = {**os.environ, "PYTHONPATH": paths, "KGS_CACHE": str(tmp_path / "cache")}
        command = [sys.executable, "-B", "-c", USE]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        return done.stdout.strip() or done.stderr

    return run


@pytest.mark.slow
def test_first_process_compiles_and_later_ones_load_without_numba(use):
    assert use("one + other") == "42 True"
    assert use("one + other") == "42 False"
    assert use("one - other") == "38 True"


@pytest.mark.slow
def test_what_could_raise_is_not_compiled(use, tmp_path):
    """numba's handling of errors is not there where the code is loaded: a call into nothing."""
    assert "calls " in use("(one, other)[one]")
    assert not list((tmp_path / "cache").glob("loops_of_a_test-*[0-9a-f]"))


def test_cache_that_cannot_be_made_is_an_error(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("KGS_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(PermanentError, match="point KGS_CACHE at a directory"):
        machine_code.machine_code("kgs_core.adapters.ingest.native.loops", [])


@pytest.mark.parametrize("lost", ["texts.o", "texts.symbol", "names"])
def test_cache_that_has_lost_a_part_is_an_error_that_names_its_folder(monkeypatch, tmp_path, lost):
    """A tidier of temporary files took it."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "names").write_text("texts")
    monkeypatch.setattr(machine_code, "build_once", lambda *_: tmp_path / "kept")
    for name in {"texts.o", "texts.symbol"} - {lost}:
        (tmp_path / "kept" / name).write_text("2 texts")
    if lost == "names":
        (tmp_path / "kept" / "names").unlink()
    with pytest.raises(PermanentError, match=r"kept: what is kept there is damaged .* remove it"):
        machine_code.machine_code("kgs_core.adapters.ingest.native.loops", [])
