"""What `make` lets pass: the recipes themselves, run with programs of the test in place of Python and Go."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import seconds_of

ROOT = Path(__file__).parents[1]
SYSTEM_TESTS = sorted((ROOT / "tests/system").glob("test_*.py"))
TESTS = """
import os
from pathlib import Path
import pytest

pytestmark = pytest.mark.system

def fails_once(name):
    if not Path(name).exists():
        Path(name).touch()
        raise AssertionError("only at first")

def test_sound():
    pass

def test_crowded():
    fails_once("crowded")

@pytest.mark.neighbours
def test_store():
    fails_once("store")

@pytest.mark.neighbours
@pytest.mark.alone
def test_of_three_brokers():
    assert "PYTEST_XDIST_WORKER" not in os.environ
"""
CHAOS = """
@pytest.mark.chaos
def test_harassed():
    fails_once("harassed")
"""
SKIPPED = """
import pytest

pytestmark = pytest.mark.system

@pytest.fixture
def s3_server():
    pytest.skip("no versitygw")

def test_store(s3_server):
    pass

@pytest.mark.xfail(strict=True)
def test_known_fault():
    raise AssertionError
"""
SETTINGS = """
[pytest]
addopts = --strict-markers -p tests.conftest
markers =
    system
    soak
    peer
    neighbours
    alerts
    k8s
    alone
    chaos
"""


def write_program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def project(tmp_path):
    """A folder with tests, and a `bin` for `make` whose Python runs them."""
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "tests/system").mkdir(parents=True)
    run = f'cd {tmp_path} && PYTHONPATH={ROOT} exec {sys.executable} "$@"'
    write_program(tmp_path / "bin/python", run)
    write_program(tmp_path / "bin/kgs", "exit 0")
    return tmp_path


def environment(**changes):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CI", "PYTEST", "MAKE", "VERS"))}
    return {**kept, **changes}


def make(project, target, *settings, **environ):
    command = ["make", "-o", "dev", target, f"BIN={project / 'bin'}", f"VENV={project}", *settings]
    env = environment(**environ)
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "crowded", "last"),
    [("system", "crowded", "1 passed in"), ("test-neighbours", "store", "1 passed, 3 deselected")],
)
def test_what_fails_in_the_crowd_alone_is_named_and_passes(project, target, crowded, last):
    (project / "tests/system/test_these.py").write_text(TESTS)
    done = make(project, target, "-o", "neighbours")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nFAILED BESIDE OTHERS" in done.stdout
    assert re.search(rf"FAILED tests/system/test_these.py::test_{crowded}.*only at first", done.stdout)
    assert last in done.stdout.splitlines()[-1], "what takes the whole machine"


@pytest.mark.slow
def test_what_injects_faults_gets_no_second_try(project):
    """A row that is lost once in ten times must not be a green build with a line in it."""
    (project / "tests/system/test_these.py").write_text(TESTS + CHAOS)
    done = make(project, "system")
    assert done.returncode != 0, done.stdout
    assert re.search(r"ERROR tests/system/test_these.py::test_harassed.*no second try", done.stdout)
    assert "1 passed, 1 error" in done.stdout.splitlines()[-1], "the other one is run again"


def test_of_tests_that_run_at_once_the_longest_come_first():
    marks = [None, pytest.mark.slow.mark, pytest.mark.slow(90).mark, pytest.mark.slow(150).mark]
    items = [SimpleNamespace(get_closest_marker={"slow": mark}.get) for mark in marks]
    assert sorted(items, key=seconds_of, reverse=True) == items[::-1]


@pytest.mark.parametrize("path", SYSTEM_TESTS, ids=lambda path: path.stem)
def test_who_injects_faults_says_so(path):
    text = path.read_text()
    faults = re.search(r"SIGSTOP|SIGKILL|crash_at\(|[^_]meddling\(|[a-z]\.kill\(\w+\.nodes", text)
    assert not faults or "pytest.mark.chaos" in text, faults


@pytest.mark.parametrize(("ci", "outcome"), [({}, "1 skipped, 1 xfailed"), ({"CI": "true"}, "1 xfailed, 1 error")])
def test_a_skip_is_a_failure_where_ci_runs_the_tests(project, ci, outcome):
    (project / "test_these.py").write_text(SKIPPED)
    command = [str(project / "bin/python"), "-m", "pytest", "-rA", "--strict-config", "."]
    done = subprocess.run(command, env=environment(**ci), capture_output=True, text=True, timeout=60, check=False)
    assert outcome in done.stdout.splitlines()[-1], done.stdout + done.stderr
    assert "no versitygw" in done.stdout


@pytest.mark.parametrize("go", ["", "echo 'no network' >&2; exit 1"], ids=["no Go", "it does not build"])
@pytest.mark.parametrize(
    ("target", "program", "tests"), [("s3-server", "versitygw", "S3"), ("toxiproxy", "toxiproxy-server", "outages")]
)
def test_without_a_server_the_tests_end_where_ci_is_set_and_nowhere_else(project, go, target, program, tests):
    """Else its tests are skipped for ever, and all is green."""
    tools = project / "tools"
    for name in ("sh", "sed", "mkdir"):
        write_program(tools / name, f'exec /bin/{name} "$@"')
    if go:
        write_program(tools / "go", go)
    for ci, status in (("", 0), ("true", 2)):
        done = make(project, target, f"PATH={tools}", CI=ci)
        assert done.returncode == status, done.stdout + done.stderr
        assert ("install Go" in done.stdout) if not go else (str(project / f"{program}.log") in done.stdout)
        assert (f"{tests} tests must run here" in done.stdout) == bool(ci)
    write_program(tools / program, "exit 0")
    assert make(project, target, f"PATH={tools}", CI="true").returncode == 0


@pytest.mark.parametrize(
    ("target", "built", "program"),
    [("s3-server", "versitygw", "versitygw"), ("toxiproxy", "server", "toxiproxy-server")],
)
def test_a_server_that_is_built_is_there(project, target, built, program):
    write_program(project / "tools/go", f'touch "$GOBIN/{built}"')
    write_program(project / "tools/sh", 'exec /bin/sh "$@"')
    done = make(project, target, f"PATH={project / 'tools'}:/bin:/usr/bin", CI="true")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project / "bin" / program).exists()
