"""Loops compiled once and loaded without numba: kept whole, made anew when their source changes, unable to raise."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
SOURCE = """
ENTRIES = {{"add": 2}}

def add(one, other):
    return {body}
"""
USE = """
import sys
from kgs_core.accel.compiled import machine_code
loops = machine_code("loops_of_a_test")
print(loops["add"](40, 2), "numba" in sys.modules)
"""
NOT_KEPT = "every process compiles for itself, which takes seconds: "


@pytest.fixture
def use(tmp_path):
    """What a process of its own prints that uses loops with this body: its results, and its complaints."""
    (tmp_path / "source").mkdir()

    def run(body, cache="cache"):
        (tmp_path / "source" / "loops_of_a_test.py").write_text(SOURCE.format(body=body))
        paths = os.pathsep.join([str(tmp_path / "source"), *filter(None, sys.path)])
        environment = {**os.environ, "PYTHONPATH": paths, "KGS_CACHE": str(tmp_path / cache)}
        command = [sys.executable, "-B", "-c", USE]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        return done.stdout.strip(), done.stderr.strip()

    return run


def test_first_process_compiles_and_later_ones_load_without_numba(use):
    assert use("one + other") == ("42 True", "")
    assert use("one + other") == ("42 False", "")
    assert use("one - other") == ("38 True", "")


def test_what_could_raise_is_not_compiled(use, tmp_path):
    """numba's handling of errors is not there where the code is loaded: a call into nothing."""
    assert "calls " in use("(one, other)[one]")[1]
    assert not list((tmp_path / "cache").glob("loops_of_a_test-*[0-9a-f]"))


def test_cache_that_cannot_be_made_makes_every_process_compile_for_itself(use, tmp_path):
    (tmp_path / "file").touch()
    for _ in range(2):
        result, complaint = use("one + other", "file/cache")
        assert (result, complaint.count("\n")) == ("42 True", 0)
        assert complaint.startswith(NOT_KEPT)
        assert "point KGS_CACHE at a directory" in complaint


@pytest.mark.parametrize("lost", ["add.o", "add.symbol", "names"])
def test_cache_that_has_lost_a_part_is_made_up_for_and_named(use, tmp_path, lost):
    """A tidier of temporary files took it."""
    use("one + other")
    (folder,) = (tmp_path / "cache").glob("*[0-9a-f]")
    (folder / lost).unlink()
    result, complaint = use("one + other")
    assert result == "42 True"
    assert complaint.startswith(f"{NOT_KEPT}{folder}: what is kept there is damaged")
    assert complaint.endswith(": remove it")
