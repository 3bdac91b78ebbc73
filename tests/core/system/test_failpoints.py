"""Failpoints act only where they are switched on, and a plan that cannot be carried out is refused."""

import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from kgs_core.cli.main import cli
from kgs_core.errors import ConfigError
from kgs_core.system.failpoints import crash_plan, failpoint
from tests.failpoints import crash_at


@pytest.fixture
def planned(monkeypatch, tmp_path):
    """A plan in the environment, with changes; None takes a variable away."""

    def build(**changes):
        for name, value in (crash_at("written:2", tmp_path) | changes).items():
            monkeypatch.delenv(name, raising=False)
            if value is not None:
                monkeypatch.setenv(name, value)

    return build


def test_without_a_plan_nothing_happens(monkeypatch):
    monkeypatch.delenv("KGS_CRASH_AT", raising=False)
    monkeypatch.setenv("KGS_FAILPOINTS", "1")
    assert crash_plan() is None
    failpoint("written")


def test_a_plan_that_is_switched_on(planned, tmp_path):
    planned()
    plan = crash_plan()
    assert (plan.name, plan.count, plan.directory, plan.signal_name) == ("written", 2, str(tmp_path), "SIGKILL")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"KGS_FAILPOINTS": None}, "KGS_CRASH_AT=written:2: failpoints are for tests: set KGS_FAILPOINTS=1"),
        ({"KGS_FAILPOINTS": "0"}, "failpoints are for tests"),
        ({"KGS_CRASH_AT": "writen"}, "KGS_CRASH_AT=writen: no such failpoint: name one of fetched, "),
        ({"KGS_CRASH_AT": "written:0"}, "KGS_CRASH_AT=written:0: behind the colon"),
        ({"KGS_CRASH_AT": "written:x"}, "KGS_CRASH_AT=written:x: behind the colon"),
        ({"KGS_CRASH_SIGNAL": "TERM"}, "KGS_CRASH_SIGNAL=TERM: no such signal: name one of KILL, STOP"),
        ({"KGS_CRASH_DIR": None}, "set KGS_CRASH_DIR to a directory"),
    ],
)
def test_a_plan_that_is_refused(planned, changes, said):
    """In one line; and no process begins with it."""
    planned(**changes)
    with pytest.raises(ConfigError) as refused:
        failpoint("fetched")
    (problem,) = refused.value.problems
    assert said in problem
    result = CliRunner().invoke(cli, ["example"])
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"error: {problem}\n")


def test_a_process_ends_where_its_plan_says(tmp_path):
    program = "from kgs_core.system.failpoints import failpoint as f; f('written'); print(1); f('written')"
    environment = os.environ | crash_at("written:2", tmp_path)
    done = subprocess.run(
        [sys.executable, "-uc", program], env=environment, start_new_session=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"1\n")
    assert (tmp_path / "written").exists()
