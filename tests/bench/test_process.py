"""Requests to a benchmarked program, and what is said when it dies."""

import sys
import tempfile
from pathlib import Path

import pytest

from bench.process import BenchProcess
from kgs_core.errors import PermanentError

ECHO = """
import json, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(b'{"session": true}\\n')
    for line in s.makefile("rb"):
        if json.loads(line)["do"] == "die":
            sys.exit("out of luck")
        s.sendall(line)
"""


@pytest.fixture
def directory():
    with tempfile.TemporaryDirectory() as short:  # a socket's path may not be as long as pytest's are
        yield Path(short)


def test_requests_are_answered_one_by_one(directory):
    with BenchProcess("echo", [sys.executable, "-c", ECHO], directory) as process:
        assert process.start() == {"session": True}
        assert process.request("measure", mb=5) == {"do": "measure", "mb": 5}
        assert process.request("close") == {"do": "close"}
        assert process.session > 0
    with pytest.raises(PermanentError):
        assert process.session


def test_the_end_of_the_log_is_reported_when_it_dies(directory):
    with BenchProcess("echo", [sys.executable, "-c", ECHO], directory) as process:
        process.start()
        with pytest.raises(PermanentError, match="out of luck"):
            process.request("die")


def test_a_program_that_never_begins_is_reported_too(directory):
    with (
        BenchProcess("broken", [sys.executable, "-c", "raise SystemExit('no Java')"], directory) as process,
        pytest.raises(PermanentError, match="no Java"),
    ):
        process.start()
